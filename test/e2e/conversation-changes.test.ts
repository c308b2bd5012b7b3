import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, expect, it, onTestFinished } from "vitest";
import { brigHere } from "../support/cli-here.js";
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
  writeFileSync(join(workspace, "file"), "the host's\n");
  environment = { BRIG_HOME: home, CODEX_HOME: home, OPENAI_API_KEY: "", NO_COLOR: "" };
});

/** A conversation in which each message runs the next script, and the model then says "done". */
async function converse(
  scripts: readonly string[],
  { flags = ["--workspace", "overlay"] }: { flags?: string[] } = {},
): Promise<Terminal> {
  const steps = scripts.flatMap((script) => [
    { calls: [{ shell: { command: ["bash", "-c", script] } }] },
    { text: "done" },
  ]);
  return await open({ steps }, flags);
}

async function open(script: object, flags: readonly string[]): Promise<Terminal> {
  const file = join(folder, "script.yaml");
  await writeFile(file, JSON.stringify(script));
  const args = ["-a", "never", "--script", file, ...flags];
  const terminal = await Terminal.open(args, { cwd: workspace, env: environment });
  onTestFinished(() => terminal[Symbol.asyncDispose]());
  await terminal.waitForScreen(/^›\s*$/m);
  return terminal;
}

/** Enters a line, and waits for the answer and the end of the turn. */
async function say(terminal: Terminal, line: string, answer: RegExp): Promise<void> {
  terminal.type(`${line}\r`);
  await terminal.waitForScreen(answer);
  await terminal.waitForScreen(/^(?![\s\S]*◦ )[\s\S]*\n›\s*\n/);
}

async function leave(terminal: Terminal): Promise<void> {
  terminal.type("\x04");
  expect((await terminal.end()).exitStatus).toBe(0);
}

const onHost = (name: string) => readFileSync(join(workspace, name), "utf8");

it("/diff shows what a copy-on-write workspace has changed, and /apply brings it to the files", async () => {
  const terminal = await converse(["echo changed > file; mkdir new; echo one > 'new/a b'; echo two > other"]);
  await say(terminal, "/diff", /nothing differs from your files/);
  await say(terminal, "go", /● done/);
  await say(
    terminal,
    "/diff",
    /changes that your files do not have[\s\S]*-the host's\n {2}\+changed\n {2}added directory new\n[\s\S]*\+one/,
  );
  await say(
    terminal,
    `/apply file "new/a b"`,
    /applied to your files: 3 paths\n {2}file\n {2}new\n {2}new\/a b/,
  );
  expect(onHost("file")).toBe("changed\n");
  expect(onHost("new/a b")).toBe("one\n");
  expect(existsSync(join(workspace, "other"))).toBe(false);
  await say(terminal, "/apply", /applied to your files: 1 path\n {2}other/);
  expect(onHost("other")).toBe("two\n");
  await say(terminal, "/apply ", /other\n[\s\S]*nothing differs from your files/);
  await leave(terminal);
});

it("/apply names what is in conflict and writes nothing, and what is never applied", async () => {
  const terminal = await converse(["echo changed > file; echo two > other; mkfifo pipe; mkdir -p new/.git"]);
  await say(terminal, "go", /● done/);
  writeFileSync(join(workspace, "file"), "a person's\n");
  await say(
    terminal,
    "/apply",
    /never applied\n {2}new\/\.git: it belongs to a git[\s\S]*pipe: it is a fifo\n[\s\S]*in conflict with your files\n {2}file: it was changed on the host meanwhile\n! nothing was applied/,
  );
  expect(onHost("file")).toBe("a person's\n");
  expect(existsSync(join(workspace, "other"))).toBe(false);
  await say(terminal, "/apply ../elsewhere", /"\.\.\/elsewhere" is not in the workspace/);
  await leave(terminal);
});

it("/diff answers during a turn, and /apply waits for its end", async () => {
  writeFileSync(join(workspace, "gate"), "");
  const terminal = await converse([
    "echo half > file; echo started; until grep -q go gate; do sleep 0.1; done; echo whole > file",
  ]);
  terminal.type("go\r");
  await terminal.waitForScreen(/│ started/);
  terminal.type("/diff\r");
  await terminal.waitForScreen(/\+half/);
  terminal.type("/apply\r");
  await terminal.waitForScreen(/next: \/apply/);
  expect(onHost("file")).toBe("the host's\n");
  writeFileSync(join(workspace, "gate"), "go");
  await terminal.waitForScreen(/● done[\s\S]*applied to your files: 1 path\n {2}file/);
  expect(onHost("file")).toBe("whole\n");
  await leave(terminal);
});

it("/apply does nothing while an agent is at work", async () => {
  const terminal = await open(
    {
      steps: [{ calls: [{ spawn_agent: { message: "work" } }] }, { text: "done" }],
      agents: [
        {
          steps: [
            { calls: [{ exec_command: { cmd: "echo half > file; sleep 600", yield_time_ms: 30_000 } }] },
            { text: "done" },
          ],
        },
      ],
    },
    ["--workspace", "overlay"],
  );
  terminal.type("go\r");
  await terminal.waitForScreen(/● done/);
  terminal.type("/apply\r");
  await terminal.waitForScreen(/agents are still changing files, so \/apply has done nothing/);
  expect(onHost("file")).toBe("the host's\n");
  terminal.type("\x04");
  expect((await terminal.end()).exitStatus).toBe(0);
});

it("/undo takes back what the last call changed, then the one before, and the model reads of it", async () => {
  const terminal = await open(
    {
      steps: [
        { calls: [{ shell: { command: ["bash", "-c", "echo one > file; echo new > added"] } }] },
        { calls: [{ shell: { command: ["bash", "-c", "echo two > file; rm added"] } }] },
        { text: "done" },
        { calls: [{ shell: { command: ["bash", "-c", "cat file; ls"] } }] },
        { text: "I see" },
      ],
    },
    ["--workspace", "overlay"],
  );
  await say(terminal, "/undo", /there is nothing to undo/);
  await say(terminal, "go", /● done/);
  await say(terminal, "/undo", /is undone\n {2}made again added\n {2}put back file\n/);
  await say(terminal, "/diff", /\+one/);
  await say(terminal, "/undo", /is undone\n {2}removed added\n {2}put back file\n/);
  await say(terminal, "/undo", /put back file\n[\s\S]*there is nothing to undo/);
  await say(terminal, "look", /│ the host's\n {2}│ file\n[\s\S]*● I see/);
  expect(onHost("file")).toBe("the host's\n");
  await leave(terminal);
  const listed = await brigHere(["sessions", "--json"], { env: environment });
  const [{ path }] = JSON.parse(listed.stdout) as [{ path: string }];
  expect(readFileSync(path, "utf8").match(/The user has undone/g)).toHaveLength(2);
});

it("/apply says what it needs where commands change the files themselves", async () => {
  const terminal = await converse(["echo changed > file"], { flags: [] });
  await say(terminal, "go", /● done/);
  await say(
    terminal,
    "/apply",
    /\/apply needs a copy-on-write workspace, which this session does not have[\s\S]*--workspace overlay/,
  );
  await say(terminal, "/undo", /\/undo needs a copy-on-write workspace/);
  await say(terminal, "/diff", /not in a git repository/);
  await leave(terminal);
});
