import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { crc32, deflateSync } from "node:zlib";
import { beforeEach, expect, it, onTestFinished } from "vitest";
import { brigHere } from "../support/cli-here.js";
import {
  created,
  messageDone,
  respond,
  startResponsesServer,
  textDelta,
} from "../support/responses-server.js";
import { temporaryDirectory } from "../support/sandbox.js";
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

async function open(args: readonly string[], env: Record<string, string> = {}): Promise<Terminal> {
  const terminal = await Terminal.open([...args], { cwd: workspace, env: { ...environment, ...env } });
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

it.each<{ terminalName: string; env: Record<string, string>; start: string; end: string }>([
  {
    terminalName: "kitty",
    env: { TERM: "xterm-kitty" },
    start: "\x1b_Ga=T,f=100,q=2,C=1,r=3,m=0;",
    end: "\x1b\\",
  },
  {
    terminalName: "iTerm2",
    env: { TERM_PROGRAM: "iTerm.app" },
    start: "height=3;preserveAspectRatio=1;doNotMoveCursor=1:",
    end: "\x07",
  },
])(
  "draws the pictures of a prompt and of a call in $terminalName, and goes on below them",
  async ({ env, start, end }) => {
    const given = png(64, 48);
    const found = png(60, 60);
    await writeFile(join(folder, "given.png"), given);
    await writeFile(join(workspace, "found.png"), found);
    const steps = [{ calls: [{ view_image: { path: "found.png" } }] }, { text: "Two pictures." }];
    const terminal = await open([...(await script(steps)), "-i", join(folder, "given.png")], env);
    await terminal.waitForScreen(/^›\s*$/m);
    terminal.type("look\r");
    await terminal.waitForScreen(/● Two pictures\.[\s\S]*^›\s*$/m);
    await leave(terminal);
    const files = terminal.shown
      .split(start)
      .slice(1)
      .map((rest) => rest.split(end)[0]);
    expect(files).toEqual([given.toString("base64"), found.toString("base64")]);
    const rows = terminal.screen.history.map((row) => row.trimEnd()).join("\n");
    expect(rows).toMatch(
      /› look\n {2}picture given\.png 64×48\n\n\n\n\n• view_image .*found\.png\n {2}│ image\/png, 60×60, .*\n\n\n\n\n● Two pictures\./,
    );
  },
);

it.each<{ where: string; env: Record<string, string> }>([
  { where: "without colours", env: { TERM: "xterm-kitty", NO_COLOR: "1" } },
  { where: "in tmux", env: { TERM: "xterm-kitty", TMUX: "/tmp/tmux-0/default,1,0" } },
  { where: "in a terminal that is not known", env: {} },
])("says only what a picture is $where", async ({ env }) => {
  await writeFile(join(folder, "given.png"), png(64, 48));
  const terminal = await open([...(await script([{ text: "Seen." }])), "-i", join(folder, "given.png")], env);
  await terminal.waitForScreen(/^›\s*$/m);
  terminal.type("look\r");
  await terminal.waitForScreen(/› look\n {2}picture given\.png 64×48\n\s*\n● Seen\.[\s\S]*^›\s*$/m);
  await leave(terminal);
  expect(terminal.shown).not.toContain("\x1b_G");
  expect(terminal.shown).not.toContain("\x1b]1337");
});
