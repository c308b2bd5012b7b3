import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { crc32, deflateSync } from "node:zlib";
import { beforeEach, expect, it, onTestFinished } from "vitest";
import { brigHere } from "../support/cli-here.js";
import { jpegPicture, pngPicture } from "../support/pictures.js";
import {
  created,
  messageDone,
  respond,
  startResponsesServer,
  textDelta,
} from "../support/responses-server.js";
import { temporaryDirectory } from "../support/sandbox.js";
import { readSixels } from "../support/sixels.js";
import { Terminal } from "../support/terminal.js";

let folder = "";
let workspace = "";
let environment: Record<string, string> = {};

beforeEach(async () => {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory[Symbol.asyncDispose]());
  folder = directory.path;
  workspace = join(folder, "work");
  const home = join(folder, "home");
  await mkdir(workspace);
  await mkdir(home);
  environment = { BRIG_HOME: home, CODEX_HOME: home, OPENAI_API_KEY: "", NO_COLOR: "", TMUX: "", STY: "" };
});

async function open(
  args: readonly string[],
  env: Record<string, string> = {},
  options: { answers?: string } = {},
): Promise<Terminal> {
  const terminal = await Terminal.open([...args], {
    cwd: workspace,
    env: { ...environment, ...env },
    ...options,
  });
  onTestFinished(() => terminal[Symbol.asyncDispose]());
  return terminal;
}

async function script(steps: readonly object[]): Promise<string[]> {
  const file = join(folder, "script.yaml");
  await writeFile(file, JSON.stringify({ steps }));
  return ["--script", file];
}

async function leave(terminal: Terminal): Promise<void> {
  await terminal.waitForScreen(/^(?![\s\S]*◦ )[\s\S]*\n›\s*\n/);
  terminal.type("\x04");
  expect((await terminal.end()).exitStatus).toBe(0);
}

/** A message as a person reads it, without what was before and after it. */
function messageOn({ screen }: Terminal): string[] {
  const rows = screen.history.map((row) => row.trimEnd());
  const start = rows.findIndex((row) => row.startsWith("● "));
  return rows.slice(start, rows.indexOf("›", start) - 1);
}

const message = `# What I found

The **cause** is in \`main.c\`, see [the page](https://example.test/page):

1. read the file
   - [x] its head
   - [ ] its tail
2. change it

\`\`\`c
int main(void) {

\treturn 0;
}
\`\`\`

| file | lines |
|:-----|------:|
| main.c | 4 |
| 日本語.c | 10 |

> Quoted, <b>not bold</b>`;

const laidOut = [
  "● What I found",
  "",
  "  The cause is in `main.c`, see the page (https://example.test/page):",
  "",
  "  1. read the file",
  "     ✔ its head",
  "     □ its tail",
  "  2. change it",
  "",
  "    int main(void) {",
  "",
  "        return 0;",
  "    }",
  "",
  "  file     │ lines",
  "  ─────────┼──────",
  "  main.c   │     4",
  "  日本語.c │    10",
  "",
  "  │ Quoted, <b>not bold</b>",
];

it("lays out a message as Markdown while it arrives, in any pieces, and again when the session is resumed", async () => {
  const pieces = message.match(/.{1,7}/gs) ?? [];
  await using server = await startResponsesServer([
    respond(...pieces.map((piece) => textDelta(piece)), messageDone(message)),
  ]);
  const env = { OPENAI_API_KEY: "key-1", OPENAI_BASE_URL: server.url };
  const terminal = await open(["-m", "gpt-5-test"], env);
  await terminal.waitForScreen(/^›\s*$/m);
  terminal.type("look\r");
  await terminal.waitForScreen(/^(?![\s\S]*◦ )[\s\S]*│ Quoted, <b>not bold<\/b>[\s\S]*\n›\s*\n/);
  expect(messageOn(terminal)).toEqual(laidOut);
  await leave(terminal);
  // Bold, and a colour for code.
  expect(terminal.shown).toContain("\x1b[1mcause\x1b[22m");
  const again = await open(["resume", "--last", "-m", "gpt-5-test"], env);
  await again.waitForScreen(/│ Quoted, <b>not bold<\/b>[\s\S]*^›\s*$/m);
  expect(messageOn(again)).toEqual(laidOut);
  await leave(again);
});

it("shows what may still change of a message, and keeps it where the message breaks off", async () => {
  await using server = await startResponsesServer([
    {
      kind: "stream",
      events: [created(), textDelta("Done:\n\n- **one**\n"), textDelta("- tw")],
      ending: "hang",
    },
  ]);
  const terminal = await open(["-m", "gpt-5-test"], { OPENAI_API_KEY: "key-1", OPENAI_BASE_URL: server.url });
  await terminal.waitForScreen(/^›\s*$/m);
  terminal.type("list\r");
  await terminal.waitForScreen(/● Done:\n\s*\n {2}- one\n {2}- tw\n\s*\n◦ working/);
  terminal.type("\x03");
  await terminal.waitForScreen(/● Done:\n\s*\n {2}- one\n {2}- tw\n! interrupted/);
  await leave(terminal);
});

it("lays out the final message of a run on a terminal, and nowhere else", async () => {
  const args = ["run", ...(await script([{ text: message }])), "look"];
  const file = join(folder, "last-message");
  const terminal = await open([...args, "-o", file]);
  expect((await terminal.end()).exitStatus).toBe(0);
  expect(await readFile(file, "utf8")).toBe(message);
  const shown = terminal.screen.history.map((row) => row.trimEnd()).join("\n");
  expect(shown).toContain(laidOut.map((row) => row.slice(2)).join("\n"));
  const piped = await brigHere(args, { cwd: workspace, env: environment });
  expect(piped.stdout).toBe(`${message}\n`);
});

it("prints a final message that has a schema as it is, also on a terminal", async () => {
  const schema = join(folder, "schema.json");
  await writeFile(schema, JSON.stringify({ type: "object" }));
  const found = '{\n    "cause": "*x* <b>"\n}';
  const terminal = await open([
    "run",
    ...(await script([{ text: found }])),
    "--output-schema",
    schema,
    "look",
  ]);
  expect((await terminal.end()).exitStatus).toBe(0);
  expect(terminal.screen.history.map((row) => row.trimEnd()).join("\n")).toContain(found);
});

/** A PNG of one colour, as any program would write it. */
function png(width: number, height: number): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 2], 8);
  const pixels = deflateSync(Buffer.alloc((width * 3 + 1) * height));
  return Buffer.concat([
    Buffer.from("\x89PNG\r\n\x1a\n", "latin1"),
    chunk("IHDR", header),
    chunk("IDAT", pixels),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

function chunk(name: string, data: Buffer): Buffer {
  const bytes = Buffer.alloc(12 + data.length);
  bytes.writeUInt32BE(data.length, 0);
  bytes.write(name, 4, "latin1");
  data.copy(bytes, 8);
  bytes.writeUInt32BE(crc32(bytes.subarray(4, 8 + data.length)), 8 + data.length);
  return bytes;
}

const KITTY = "\x1b_Gi=31;OK\x1b\\\x1bP>|kitty(0.42.1)\x1b\\\x1b[6;20;10t\x1b[?62;52;c";

it.each<{ terminalName: string; answers: string; start: string; end: string }>([
  { terminalName: "kitty", answers: KITTY, start: "\x1b_Ga=T,f=100,q=2,C=1,r=3,m=0;", end: "\x1b\\" },
  {
    terminalName: "iTerm2",
    answers: "\x1bP>|iTerm2 3.6.5\x1b\\\x1b[?62;4c",
    start: "height=3;preserveAspectRatio=1;doNotMoveCursor=1:",
    end: "\x07",
  },
])(
  "draws the pictures of a prompt and of a call in $terminalName, and goes on below them",
  async ({ answers, start, end }) => {
    const given = png(64, 48);
    const found = png(60, 60);
    await writeFile(join(folder, "given.png"), given);
    await writeFile(join(workspace, "found.png"), found);
    const terminal = await openWithPictures(answers);
    const files = terminal.shown
      .split(start)
      .slice(1)
      .map((rest) => rest.split(end)[0]);
    expect(files).toEqual([given.toString("base64"), found.toString("base64")]);
    expect(rowsOf(terminal)).toMatch(
      /› look\n {2}picture given\.png 64×48\n\n\n\n\n• view_image .*found\.png\n {2}│ image\/png, 60×60, .*\n\n\n\n\n● Two pictures\./,
    );
  },
);

/** A conversation about `given.png` and `found.png` that has ended. */
async function openWithPictures(answers: string): Promise<Terminal> {
  const steps = [{ calls: [{ view_image: { path: "found.png" } }] }, { text: "Two pictures." }];
  const args = [...(await script(steps)), "-i", join(folder, "given.png")];
  const terminal = await open(args, {}, { answers });
  await terminal.waitForScreen(/^›\s*$/m);
  terminal.type("look\r");
  await terminal.waitForScreen(/● Two pictures\.[\s\S]*^›\s*$/m);
  await leave(terminal);
  return terminal;
}

const rowsOf = ({ screen }: Terminal) => screen.history.map((row) => row.trimEnd()).join("\n");

it("draws them as sixels in a terminal that has nothing better, also those of JPEG files", async () => {
  await writeFile(join(folder, "given.png"), pngPicture({ width: 60, height: 40 }));
  await writeFile(join(workspace, "found.png"), jpegPicture({ width: 60, height: 60 }));
  const terminal = await openWithPictures("\x1bP>|foot(1.22.3)\x1b\\\x1b[6;20;10t\x1b[?62;4;22c");
  const sent = terminal.shown.split("\x1bP").slice(1);
  const pictures = sent.map((text) => readSixels(`\x1bP${text.slice(0, text.indexOf("\x1b\\") + 2)}`));
  expect(pictures).toMatchObject([
    // Two rows of 20 pixels have room for six bands of sixels.
    { width: 54, height: 36 },
    { width: 60, height: 60 },
  ]);
  for (const { width, pixels } of pictures) {
    const [left, right] = [pixels.slice((5 * width + 5) * 4), pixels.slice((6 * width - 5) * 4)];
    expect([(left[0] ?? 0) > 200, (left[2] ?? 0) < 50, (right[0] ?? 0) < 50, (right[2] ?? 0) > 200]).toEqual([
      ...[true, true, true, true],
    ]);
  }
  expect(rowsOf(terminal)).toMatch(
    /› look\n {2}picture given\.png 60×40\n\n\n\n• view_image .*found\.png\n {2}│ image\/jpeg, 60×60, .*\n\n\n\n\n● Two pictures\./,
  );
});

it("takes no key for an answer and no answer for a key, however they come", async () => {
  const terminal = await open(await script([{ text: "Heard." }]), {}, { answers: "" });
  await expect.poll(() => terminal.shown, { timeout: 60_000 }).toContain("\x1b[c");
  for (const piece of [
    "he",
    "\x1b_Gi=3",
    "1;OK\x1b",
    "\\",
    "l",
    "\x1bP>|kitty(0.4",
    "2.1)\x1b\\lo",
    "\x1b[?62;5",
    "2;c!",
  ]) {
    terminal.type(piece);
    await new Promise(setImmediate);
  }
  await terminal.waitForScreen(/^› hello!\s*$/m);
  terminal.type("\r");
  await terminal.waitForScreen(/› hello!\n\s*\n● Heard\.[\s\S]*^›\s*$/m);
  await leave(terminal);
});

it.each<{ where: string; env: Record<string, string>; answers?: string }>([
  { where: "without colours", env: { NO_COLOR: "1" }, answers: KITTY },
  { where: "in tmux", env: { TERM: "xterm-kitty", TMUX: "/tmp/tmux-0/default,1,0" }, answers: KITTY },
  { where: "in a terminal that shows none", env: {} },
  { where: "in a terminal that answers nothing", env: {}, answers: "" },
])("says only what a picture is $where", async ({ env, answers }) => {
  await writeFile(join(folder, "given.png"), png(64, 48));
  const args = [...(await script([{ text: "Seen." }])), "-i", join(folder, "given.png")];
  const terminal = await open(args, env, answers === undefined ? {} : { answers });
  await terminal.waitForScreen(/^›\s*$/m);
  terminal.type("look\r");
  await terminal.waitForScreen(/› look\n {2}picture given\.png 64×48\n\s*\n● Seen\.[\s\S]*^›\s*$/m);
  await leave(terminal);
  for (const start of ["\x1b_Ga=T", "\x1b]1337", "\x1bP"]) expect(terminal.shown).not.toContain(start);
  expect(terminal.shown.includes("\x1b[c")).toBe(Object.keys(env).length === 0);
});
