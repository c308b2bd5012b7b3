import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { execa } from "execa";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { containersOf } from "../support/cli.js";
import { pngPicture } from "../support/pictures.js";
import {
  created,
  messageDone,
  type ReceivedRequest,
  respond,
  startResponsesServer,
  textDelta,
} from "../support/responses-server.js";
import { testRuntime } from "../support/runtime-differences.js";
import { temporaryDirectory } from "../support/sandbox.js";
import { Terminal } from "../support/terminal.js";

const onRuntime = testRuntime === undefined ? [] : ["--runtime", testRuntime];

const SECRET = "sk-live-7f3a9c0d51e64b2288a1";

let folder: string;
let home: string;
let workspace: string;
let server: Awaited<ReturnType<typeof startResponsesServer>>;

beforeEach(async () => {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory[Symbol.asyncDispose]());
  folder = directory.path;
  home = join(folder, "home");
  workspace = join(folder, "work");
  await mkdir(home);
  await mkdir(workspace);
});

/** A conversation with an endpoint on loopback, which answers each message with its number, unless it is told otherwise. */
async function converse(
  args: readonly string[] = [],
  replies: Parameters<typeof startResponsesServer>[0] = () =>
    respond(messageDone(`Answer ${server.requests.length}.`)),
): Promise<Terminal> {
  server = await startResponsesServer(replies);
  onTestFinished(() => server[Symbol.asyncDispose]());
  return await open(args);
}

async function open(args: readonly string[]): Promise<Terminal> {
  const env = {
    ...{ BRIG_HOME: home, CODEX_HOME: home, NO_COLOR: "" },
    ...{ OPENAI_API_KEY: "key-1", OPENAI_BASE_URL: server.url, REAL_KEY: SECRET },
  };
  const terminal = await Terminal.open([...args, "-m", "gpt-5-test", ...onRuntime], { cwd: workspace, env });
  onTestFinished(() => terminal[Symbol.asyncDispose]());
  await terminal.waitForScreen(/^›\s*$/m);
  return terminal;
}

const idle = /^(?![\s\S]*◦ )[\s\S]*\n›\s*\n/;

async function leave(terminal: Terminal): Promise<void> {
  await terminal.waitForScreen(idle);
  terminal.type("\x04");
  const { exitStatus, settingsAfter, settingsBefore } = await terminal.end();
  expect(exitStatus).toBe(0);
  expect(settingsAfter).toBe(settingsBefore);
  expect(await containersOf(await terminal.pid())).toEqual([]);
}

const paste = (text: string) => `\x1b[200~${text}\x1b[201~`;

/** The texts of the user's messages in a request. */
function userTexts(request: ReceivedRequest | undefined): string[] {
  const input = (request?.body.input ?? []) as { role?: string; content?: { text?: string }[] }[];
  return input
    .filter(({ role }) => role === "user")
    .flatMap(({ content = [] }) => content.map(({ text = "" }) => text));
}

describe("/", () => {
  it("lists the commands while one is typed, and runs the one that is chosen", async () => {
    const terminal = await converse();
    terminal.type("/");
    await terminal.waitForScreen(
      /^› \/\n▸ \/status +show this session's settings[\s\S]*\n {2}and \d+ more\n/m,
    );
    terminal.type("\x1b[B");
    await terminal.waitForScreen(/^ {2}\/status .*\n▸ \/diff /m);
    terminal.type("mode");
    await terminal.waitForScreen(/^› \/mode\n▸ \/mode MODE +continue in a new container/m);
    terminal.type("\t");
    await terminal.waitForScreen(
      /^› \/mode \n {2}read-only +read the workspace[\s\S]*\n {2}danger-full-access/m,
    );
    terminal.type("r");
    await terminal.waitForScreen(/^› \/mode r\n▸ read-only /m);
    terminal.type("\r");
    await terminal.waitForScreen(/read-only from now on[\s\S]*^›\s*\nread-only/m);
    terminal.type("/to\r");
    await terminal.waitForScreen(/^ {2}exec +off {2}for programs[\s\S]*^›\s*$/m);
    await leave(terminal);
    expect(server.requests).toEqual([]);
  });
});

describe("@", () => {
  it("finds files of the workspace inside the sandbox, and inserts the path that is chosen", async () => {
    await mkdir(join(workspace, "src/deep"), { recursive: true });
    await mkdir(join(workspace, ".git"));
    await mkdir(join(workspace, "parser"));
    for (const name of [
      "src/deep/parser.ts",
      "src/main.ts",
      "parser/other.ts",
      "!parser",
      "parser notes.md",
      ".git/parser",
      "e\x1b[2Jvil-\u202eparser",
    ])
      await writeFile(join(workspace, name), "");
    const terminal = await converse();
    terminal.type("see @prsr");
    await terminal.waitForScreen(
      /^› see @prsr\n▸ src\/deep\/parser\.ts\n {2}parser notes\.md\n {2}!parser\n {2}parser\/other\.ts\n/m,
    );
    expect(terminal.screen.rows.join("\n")).not.toMatch(/\.git|vil-/);
    terminal.type("\x1b[B\r");
    await terminal.waitForScreen(/^› see "parser notes\.md"\s*$/m);
    terminal.type("and @mai\t");
    await terminal.waitForScreen(/^› see "parser notes\.md" and src\/main\.ts\s*$/m);
    terminal.type("and @nothing-like-this");
    await terminal.waitForScreen(/^ {2}no file is found$/m);
    terminal.type("\x17\x7f\r");
    await terminal.waitForScreen(/● Answer 1\.[\s\S]*^›\s*$/m);
    expect(userTexts(server.requests[0]).at(-1)).toMatch(
      /^see "parser notes\.md" and src\/main\.ts and @nothing-like/,
    );
    terminal.type("! echo > src/fresh-file.ts\r");
    await terminal.waitForScreen(/✓ exit 0[\s\S]*^›\s*$/m);
    terminal.type("@fresh");
    await terminal.waitForScreen(/^▸ src\/fresh-file\.ts$/m);
    terminal.type("\x15@!p\r");
    await terminal.waitForScreen(/^› "!parser"\s*$/m);
    terminal.type("\x15@fresh\x1b");
    await terminal.waitForScreen(/^› @fresh\s*\nworkspace-write/m);
    terminal.type("\x15");
    await leave(terminal);
  });

  it("lists no more than there is room for in memory, and takes none that no message can name", async () => {
    await mkdir(join(workspace, "many"));
    await execa("sh", ["-c", "seq -f 'f%06g' 60000 | xargs touch"], { cwd: join(workspace, "many") });
    await writeFile(join(workspace, "new\nline"), "");
    const terminal = await converse();
    terminal.type("@f");
    await terminal.waitForScreen(/▸ many\/f[\s\S]*\n {2}only 50000 of the files are searched/);
    terminal.type("\x15@newline");
    await terminal.waitForScreen(/^ {2}no file is found$/m);
    terminal.type("\x15");
    await leave(terminal);
  });
});

describe("!", () => {
  it("runs a command in the sandbox, and the model reads it with the next message, also after a resume", async () => {
    const terminal = await converse(["-s", "read-only", "-a", "untrusted"]);
    terminal.type("!\r");
    await terminal.waitForScreen(/! runs what follows it as a command in the sandbox/);
    terminal.type(" seq 1 9; touch new; id -un; echo '</result>'; exit 3\r");
    await terminal.waitForScreen(
      /^› ! seq 1 9;[\s\S]*^\$ seq 1 9;[\s\S]*⋮ \d lines? above[\s\S]*Read-only file system[\s\S]*✗ exit 3 · /m,
    );
    expect(existsSync(join(workspace, "new"))).toBe(false);
    terminal.type("what was that\r");
    await terminal.waitForScreen(/● Answer 1\.[\s\S]*^›\s*$/m);
    const told =
      /^<user_shell_command>\n<command>\nseq 1 9; touch new; id -un; echo '<\\\/result>'; exit 3\n<\/command>\n<result>\nExit code: 3\nDuration: \d+\.\d{4} seconds\nOutput:\n1\n[\s\S]*\n9\n[\s\S]*Read-only file system\n\w+\n<\\\/result>\n[\s\S]*<\/result>\n<\/user_shell_command>$/;
    const texts = userTexts(server.requests[0]);
    expect(texts.filter((text) => text.startsWith("<user_shell_command>"))).toEqual([
      expect.stringMatching(told),
    ]);
    expect(texts.at(-1)).toBe("what was that");
    await leave(terminal);
    const again = await open(["resume", "--last"]);
    again.type("and again\r");
    await again.waitForScreen(/● Answer 2\.[\s\S]*^›\s*$/m);
    expect(userTexts(server.requests[1]).filter((text) => told.test(text))).toHaveLength(1);
    await leave(again);
  });

  it("shows output as it comes, and stops the command on esc", async () => {
    const terminal = await converse();
    terminal.type("! echo $$ > pid; echo begun; while :; do sleep 0.1; done\r");
    await terminal.waitForScreen(/│ begun\n {2}… \d+ s[\s\S]*^›\s*$/m);
    terminal.type("\x1b");
    await terminal.waitForScreen(/│ begun\n {2}✗ stopped[\s\S]*^›\s*$/m);
    terminal.type("! kill -0 $(cat pid) || echo it is gone\r");
    await terminal.waitForScreen(/│ it is gone\n/);
    terminal.type("well\r");
    await terminal.waitForScreen(/● Answer 1\./);
    const [stopped] = userTexts(server.requests[0]).filter((text) => text.startsWith("<user_shell_command>"));
    expect(stopped).toContain(
      "Exit code: -1\nDuration: 0.0000 seconds\nOutput:\nbegun\ncommand aborted by user\n",
    );
    await leave(terminal);
  });

  it("has its secrets hidden from the model, as those of the model's commands are", async () => {
    const secret = '[egress.secrets.API_KEY]\nhosts = ["api.example.com"]\nenv = "REAL_KEY"\n';
    await writeFile(join(home, "config.toml"), `network = "allowlist:api.example.com:443"\n${secret}`);
    await writeFile(join(workspace, "found.env"), `KEY=${SECRET}\n`);
    const terminal = await converse();
    terminal.type("! cat found.env\r");
    await terminal.waitForScreen(/│ KEY=\*+\n[\s\S]*✓ exit 0/);
    terminal.type("well\r");
    await terminal.waitForScreen(/● Answer 1\./);
    const sent = JSON.stringify(server.requests[0]?.body.input);
    expect(sent).toContain(`KEY=${"*".repeat(SECRET.length)}`);
    expect(sent).not.toContain(SECRET);
    await leave(terminal);
  });

  it("is a call that /undo takes back, and waits for the turn", async () => {
    await writeFile(join(workspace, "file"), "before\n");
    const terminal = await converse(
      ["--workspace", "overlay"],
      [
        { kind: "stream", events: [created(), textDelta("Half")], ending: "hang" },
        respond(messageDone("Whole.")),
      ],
    );
    terminal.type("work\r");
    await terminal.waitForScreen(/● Half/);
    terminal.type("! echo after > file\r");
    await terminal.waitForScreen(/next: ! echo after > file/);
    terminal.type("\x1b");
    await terminal.waitForScreen(/! interrupted[\s\S]*^› ! echo after > file\s*$/m);
    terminal.type("\r");
    await terminal.waitForScreen(/✓ exit 0[\s\S]*^›\s*$/m);
    terminal.type("! echo last > file\r");
    await terminal.waitForScreen(/✓ exit 0[\s\S]*✓ exit 0[\s\S]*^›\s*$/m);
    for (const content of ["after", "before"]) {
      terminal.type("/undo\r");
      await terminal.waitForScreen(/is undone\n {2}put back file(?![\s\S]*\$ )[\s\S]*^›\s*$/m);
      terminal.type("! cat file\r");
      await terminal.waitForScreen(new RegExp(`│ ${content}\\n`));
    }
    await leave(terminal);
  });
});

describe("esc", () => {
  it("interrupts the turn, and pressed twice brings the last message back to be edited", async () => {
    const terminal = await converse(
      [],
      [
        { kind: "stream", events: [created(), textDelta("Half")], ending: "hang" },
        respond(messageDone("Whole.")),
      ],
    );
    terminal.type("do it wel\r");
    await terminal.waitForScreen(/● Half/);
    terminal.type("later\r");
    await terminal.waitForScreen(/next: later/);
    terminal.type("\x1b");
    await terminal.waitForScreen(/! interrupted[\s\S]*^› later\s*$/m);
    terminal.type("\x1b");
    await terminal.waitForScreen(/press esc again to clear the draft/);
    terminal.type("\x1b");
    await terminal.waitForScreen(/^›\s*$/m);
    terminal.type("\x1b");
    await terminal.waitForScreen(/press esc again to edit the last message/);
    terminal.type("\x1b");
    await terminal.waitForScreen(/^› later\s*\nworkspace-write/m);
    terminal.type("\x1b[A");
    await terminal.waitForScreen(/^› do it wel\s*\nworkspace-write/m);
    terminal.type("l\r");
    await terminal.waitForScreen(/● Whole\./);
    expect(userTexts(server.requests[1]).at(-1)).toBe("do it well");
    await leave(terminal);
  });
});

describe("a paste", () => {
  it("that is long is folded wherever it is shown, and sent and kept in full", async () => {
    const terminal = await converse();
    const long = Array.from({ length: 300 }, (_, n) => `line ${n + 1}`).join("\n");
    terminal.type(`read ${paste(long.replaceAll("\n", "\r"))} and ${paste("x".repeat(1001))}`);
    await terminal.waitForScreen(/^› read \[300 lines pasted\] and \[1001 characters pasted #2\]\s*$/m);
    terminal.type("\x7f\x7f\x7f\x7f\x7f");
    await terminal.waitForScreen(/^› read \[300 lines pasted\]\s*\nworkspace-write/m);
    terminal.type("\r");
    await terminal.waitForScreen(/^› read \[300 lines pasted\]\n[\s\S]*● Answer 1\.[\s\S]*^›\s*$/m);
    expect(userTexts(server.requests[0]).at(-1)).toBe(`read ${long}`);
    terminal.type("[300 lines pasted]\r");
    await terminal.waitForScreen(/● Answer 2\.[\s\S]*^›\s*$/m);
    expect(userTexts(server.requests[1]).at(-1)).toBe("[300 lines pasted]");
    await leave(terminal);
    const [first] = (await readFile(join(home, "history.jsonl"), "utf8")).split("\n");
    expect(JSON.parse(first ?? "").text).toBe(`read ${long}`);
    const again = await open([]);
    again.type("\x1b[A\x1b[A");
    await again.waitForScreen(/^› read \[300 lines pasted\]\s*$/m);
    again.type("\r");
    await again.waitForScreen(/● Answer 3\./);
    expect(userTexts(server.requests[2]).at(-1)).toBe(`read ${long}`);
    await leave(again);
  });

  it("of the path of a picture shows its size, and the model gets the picture with that message", async () => {
    const png = pngPicture({ width: 64, height: 48 });
    await writeFile(join(folder, "my shot, one.png"), png);
    await writeFile(join(folder, "text.png"), "no picture");
    const terminal = await converse();
    terminal.type(`what is ${paste(`'${join(folder, "my shot, one.png")}' `)}?`);
    await terminal.waitForScreen(/^› what is \[picture my shot, one\.png 64x48\]\?\s*$/m);
    terminal.type("\r");
    await terminal.waitForScreen(
      /^› what is \[picture my shot, one\.png 64x48\]\?\n[\s\S]*● Answer 1\.[\s\S]*^›\s*$/m,
    );
    terminal.type(`and ${paste(join(folder, "text.png"))}\r`);
    await terminal.waitForScreen(/● Answer 2\.[\s\S]*^›\s*$/m);
    expect(userTexts(server.requests[1]).at(-1)).toBe(`and ${join(folder, "text.png")}`);
    const images = server.requests.map(
      ({ body }) => JSON.stringify(body.input).split("data:image/").length - 1,
    );
    expect(images).toEqual([1, 1]);
    expect(JSON.stringify(server.requests[0]?.body.input)).toContain(png.toString("base64"));
    await leave(terminal);
    expect(await readdir(workspace)).toEqual([]);
  });

  it("of a picture that is gone when the message is sent, sends nothing and says so", async () => {
    const picture = join(folder, "gone.png");
    await writeFile(picture, pngPicture({ width: 8, height: 8 }));
    const terminal = await converse();
    terminal.type(paste(picture));
    await terminal.waitForScreen(/^› \[picture gone\.png 8x8\]\s*$/m);
    await rm(picture);
    terminal.type("\r");
    await terminal.waitForScreen(/✗ [\s\S]*gone\.png[\s\S]*nothing was sent/);
    expect(server.requests).toEqual([]);
    await leave(terminal);
  });
});
