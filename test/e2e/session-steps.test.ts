import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { type BrigOptions, brig } from "../support/cli.js";
import { brigHere } from "../support/cli-here.js";
import { type TemporaryDirectory, temporaryDirectory } from "../support/sandbox.js";
import { Terminal } from "../support/terminal.js";

let folder: TemporaryDirectory;
let home = "";
let workspace = "";
let count = 0;

beforeAll(async () => {
  folder = await temporaryDirectory();
});

afterAll(() => folder[Symbol.asyncDispose]());

beforeEach(async () => {
  home = join(folder.path, `home-${++count}`);
  workspace = join(folder.path, `work-${count}`);
  await mkdir(home);
  await mkdir(workspace);
  await writeFile(join(workspace, "file"), "host\n");
});

const environment = () => ({ BRIG_HOME: home, CODEX_HOME: home, OPENAI_API_KEY: "", OPENAI_BASE_URL: "" });

function run(args: string[], options: BrigOptions = {}) {
  return brigHere(args, ofTheTest(options));
}

function ofTheTest(options: BrigOptions = {}): BrigOptions {
  return { cwd: workspace, ...options, env: { ...environment(), ...options.env } };
}

const shell = (script: string) => ({ exec_command: { cmd: script, login: false } });

/** A script that plays these responses, and is done. */
async function play(...responses: object[][]): Promise<string> {
  const file = join(folder.path, `play-${count}.yaml`);
  await writeFile(
    file,
    JSON.stringify({ steps: [...responses.map((calls) => ({ calls })), { text: "done" }] }),
  );
  return file;
}

/** A session on a copy-on-write workspace, with a response for each script. */
async function session(...scripts: string[]): Promise<string> {
  const file = await play(...scripts.map((script) => [shell(script)]));
  const done = await run(["run", "--workspace", "overlay", "--script", file, "go"]);
  expect(done).toMatchObject({ exitCode: 0, stdout: "done\n" });
  return idIn(done.stderr);
}

const idIn = (stderr: string) => /session ([0-9a-f-]{36})/.exec(stderr)?.[1] ?? "no session";

/** What the script prints in the session, or in a copy of it. */
async function resumed(script: string, ...args: string[]) {
  const done = await run(["resume", ...args, "--script", await play([shell(script)]), "go on"]);
  expect(done).toMatchObject({ exitCode: 0 });
  const output = done.stderr.split("\n").flatMap((line) => (line.startsWith("  │ ") ? [line.slice(4)] : []));
  return { output, stderr: done.stderr, id: idIn(done.stderr) };
}

interface ListedStep {
  step: number;
  call: { name: string } | null;
  snapshot: string;
  point: number;
  count: number;
  changes: { path: string; change: string }[];
}

async function stepsOf(id: string): Promise<ListedStep[]> {
  const { stdout } = await run(["sessions", "steps", id, "--json"]);
  return stdout
    .trim()
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as ListedStep);
}

const changed = (steps: readonly ListedStep[]) =>
  steps.map(({ point, changes }) => [point, ...changes.map(({ path }) => path)]);

function recordsOf(id: string): string {
  const names = readdirSync(join(home, "sessions"), { recursive: true, encoding: "utf8" });
  const name = names.find((each) => each.endsWith(`${id}.jsonl`)) ?? "no file";
  return readFileSync(join(home, "sessions", name), "utf8");
}

const host = () => readFileSync(join(workspace, "file"), "utf8");

describe("brig sessions steps", () => {
  it("lists the calls that changed the workspace, and what each changed", async () => {
    const id = await session("echo 1 > file; echo 1 > new", "cat file", "rm new");
    expect(host()).toBe("host\n");
    const { stdout } = await run(["sessions", "steps", id]);
    expect(stdout.split("\n").map((line) => line.split(/ {2,}/).map((cell) => cell.trim()))).toEqual([
      ["STEP", "CALL", "CHANGED"],
      [expect.stringMatching(/^\d+$/), "$ echo 1 > file; echo 1 > new", "file, new"],
      [expect.stringMatching(/^\d+$/), "$ rm new", "new"],
      [""],
    ]);
    const steps = await stepsOf(id);
    expect(steps).toMatchObject([
      { point: 1, count: 2, call: { name: "exec_command" } },
      { point: 2, count: 1, changes: [{ path: "new", change: "deleted" }] },
    ]);
    const { stdout: shown } = await run(["sessions", "show", id]);
    expect(shown.match(/^ {4}changed file, new$/gm)).toHaveLength(1);
  });

  it.each([
    ["says what it needs where no states were kept", [], "needs --workspace overlay"],
    ["says so where nothing was changed", ["--workspace", "overlay"], "no call of the session has changed"],
  ])("%s", async (_what, flags, message) => {
    const done = await run(["run", ...flags, "--script", await play([shell("cat file")]), "go"]);
    const listed = await run(["sessions", "steps", idIn(done.stderr)]);
    expect(listed).toMatchObject({ exitCode: 0, stdout: "", stderr: expect.stringContaining(message) });
  });

  it("knows what parallel calls, commands in the background and JavaScript have written", async () => {
    const patch = "*** Begin Patch\n*** Add File: patched\n+x\n*** End Patch\n";
    const go = "while [ ! -e go ]; do sleep 0.01; done; echo 1 > late; sleep 600";
    const file = await play(
      [{ apply_patch: { input: patch } }, shell("echo 1 > beside; test -e patched")],
      [shell("(while [ ! -e late ]; do sleep 0.01; done; echo 1 > later) > /dev/null 2>&1 & echo started")],
      [{ exec_command: { cmd: go, login: false, yield_time_ms: 250 } }],
      [shell("touch go; while [ ! -e later ]; do sleep 0.01; done")],
      [{ js_repl: { input: "(await import('node:fs')).writeFileSync('scripted', '')" } }],
    );
    const flags = ["--workspace", "overlay", "-c", "tools.js_repl=true", "--json", "--script", file];
    const done = await run(["run", ...flags, "go"]);
    expect(done.exitCode).toBe(0);
    const events = done.stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { type: string; call_id: string; changes: { path: string }[] });
    const points = events.filter(({ type }) => type === "restore_point.created");
    const paths = points.flatMap(({ changes }) => changes.map(({ path }) => path));
    expect(paths.toSorted()).toEqual(["beside", "go", "late", "later", "patched", "scripted"]);
    expect(events.findLastIndex(({ type }) => type === "restore_point.created")).toBeLessThan(
      events.findIndex(({ type }) => type === "turn.completed"),
    );
    expect(new Set(points.map(({ call_id: call }) => call)).size).toBe(points.length);
  });
});

describe("brig resume of a session with a copy-on-write workspace", () => {
  it("goes on in its last state, whatever the configuration says", async () => {
    const id = await session("echo 1 > file", "echo 2 > file; mkdir sub; echo s > sub/s");
    await writeFile(join(home, "config.toml"), 'workspace_kind = "bind"\n');
    const first = await resumed("cat file sub/s; echo 3 > file", id);
    expect(first.output).toEqual(["2", "s"]);
    expect(first.stderr).toContain("working in the session's copy-on-write workspace");
    // Nothing is written by this one, and the next one goes on all the same.
    expect((await resumed("cat file", id)).output).toEqual(["3"]);
    expect((await resumed("cat file sub/s", id)).output).toEqual(["3", "s"]);
    expect(host()).toBe("host\n");
    expect(changed(await stepsOf(id))).toEqual([
      [1, "file"],
      [2, "file", "sub", "sub/s"],
      [1, "file"],
    ]);
  });

  it("works on the files themselves if --workspace bind is given, and tells the model", async () => {
    const id = await session("echo 1 > file");
    const { output, stderr } = await resumed("cat file", id, "--workspace", "bind");
    expect(output).toEqual(["host"]);
    expect(stderr).toContain("with --workspace bind what the session changed");
    expect(recordsOf(id).match(/<workspace_state>/g)).toHaveLength(1);
    // From now on that is the session's workspace.
    expect((await resumed("cat file", id)).stderr).not.toContain("copy-on-write");
  });

  it("starts from the files as they are if the state is gone, warns, and tells the model", async () => {
    const id = await session("echo 1 > file");
    await rm(join(home, "snapshots"), { recursive: true });
    const { output, stderr } = await resumed("cat file; echo 2 > file", id);
    expect(output).toEqual(["host"]);
    expect(stderr).toMatch(/the state of the session's workspace, [0-9a-f-]{36}, is not kept any more/);
    expect(recordsOf(id)).toContain("<workspace_state>");
    expect((await resumed("cat file", id)).output).toEqual(["2"]);
    expect(host()).toBe("host\n");
  });

  it("does not use the state of one directory in another", async () => {
    const id = await session("echo 1 > file");
    const other = join(folder.path, `other-${count}`);
    await mkdir(other);
    await writeFile(join(other, "file"), "other\n");
    const { output, stderr } = await resumed("cat file", id, "-C", other);
    expect(output).toEqual(["other"]);
    expect(stderr).toContain("so it is not used here");
  });

  it("goes on in the last restore point of one that was killed", async () => {
    const file = await play([shell("echo 1 > file")], [shell("echo 2 > lost; echo waiting; sleep 600")]);
    const running = brig(["run", "--workspace", "overlay", "--json", "--script", file, "go"], ofTheTest());
    let id = "";
    for await (const line of createInterface({ input: running.stdout })) {
      const event = JSON.parse(line) as { type: string; thread_id?: string; item?: { command?: string } };
      id ||= event.thread_id ?? "";
      if (event.item?.command?.includes("sleep 600")) break;
    }
    running.kill("SIGKILL");
    await running;
    onTestFinished(async () => void (await brig(["gc"], ofTheTest())));
    const { output } = await resumed("cat file; ls", id);
    expect(output).toEqual(["1", "file"]);
  });

  it("keeps states apart from those of the session that it is a copy of", async () => {
    const id = await session("echo 1 > file");
    const copy = await resumed("cat file; echo copy > file", "--fork", id);
    expect(copy.output).toEqual(["1"]);
    expect((await resumed("cat file; echo original > file", id)).output).toEqual(["1"]);
    expect((await resumed("cat file", copy.id)).output).toEqual(["copy"]);
    expect((await resumed("cat file", id)).output).toEqual(["original"]);
  });

  it("gives MCP servers in containers of their own the same state", async () => {
    const id = await session("echo 1 > file");
    const server = `[mcp_servers.odd]\ncommand = "sh"\nargs = ["-c", "cat file > seen; exit 1"]\n`;
    await writeFile(join(home, "config.toml"), server);
    expect((await resumed("cat seen", id)).output).toEqual(["1"]);
  });

  it("does what brig replay and brig sessions export ask of it, too", async () => {
    const id = await session("echo 1 > file", "cat file");
    const replayed = await run(["replay", id, "-C", workspace]);
    expect(replayed.exitCode).toBe(0);
    const { stdout } = await run(["sessions", "export", id]);
    expect(stdout).not.toContain("snapshot");
  });
});

describe("brig resume --at STEP", () => {
  it("goes on in a copy that ends with the step, in the workspace as it was then", async () => {
    const id = await session("echo 1 > file; echo 1 > one", "echo 2 > file", "rm one; echo 3 > file");
    const [first, second] = await stepsOf(id);
    const at = (step: number | undefined) => ["--at", String(step)];
    const back = await resumed("cat file one", id, ...at(second?.step));
    expect(back.output).toEqual(["2", "1"]);
    expect(back.stderr).toContain(`continuing in a copy, ${back.id}`);
    expect(recordsOf(back.id)).not.toContain("<workspace_state>");
    expect((await resumed("cat file one", id, "--fork", ...at(first?.step))).output).toEqual(["1", "1"]);
    // The step before the first call that changed something.
    expect((await resumed("cat file; ls", id, ...at((first?.step ?? 0) - 1))).output).toEqual([
      "host",
      "file",
    ]);
    // A copy goes on from its own last state, and the original stays as it was.
    await resumed("echo 4 > file", back.id);
    expect((await resumed("cat file one", back.id)).output).toEqual(["4", "1"]);
    expect((await resumed("cat file; ls", id)).output).toEqual(["3", "file"]);
    expect(host()).toBe("host\n");
  });

  it("says so if no states of the workspace were kept", async () => {
    const done = await run(["run", "--script", await play([shell("echo 1 > file")]), "go"]);
    const { output, stderr } = await resumed("cat file", idIn(done.stderr), "--at", "5");
    expect(output).toEqual(["1"]);
    expect(stderr).toContain("only the conversation goes back to that step");
  });
});

it("the states go on in the container that another mode opens", async () => {
  const responses = [[shell("echo 1 > file")], [], [shell("echo 2 > file")], []].map((calls) =>
    calls.length > 0 ? { calls } : { text: "done" },
  );
  const file = join(folder.path, `play-${count}.yaml`);
  await writeFile(file, JSON.stringify({ steps: responses }));
  const terminal = await Terminal.open(
    ["--workspace", "overlay", "-s", "danger-full-access", "--script", file],
    { cwd: workspace, env: environment() },
  );
  onTestFinished(() => terminal[Symbol.asyncDispose]());
  await terminal.waitFor(/danger-full-access/);
  terminal.type("first\r");
  await terminal.waitFor(/done/);
  terminal.type("/mode workspace-write\r");
  await terminal.waitFor(/workspace-write from now on/);
  terminal.type("second\r");
  await terminal.waitFor(/echo 2 > file[\s\S]*done/);
  terminal.type("/quit\r");
  await terminal.end();
  const [line = ""] = (await run(["sessions"])).stdout.split("\n").filter((each) => each.includes("first"));
  const steps = await stepsOf(/[0-9a-f]{8}-[0-9a-f-]{27}/.exec(line)?.[0] ?? "");
  expect(changed(steps)).toEqual([
    [1, "file"],
    [2, "file"],
  ]);
  expect(new Set(steps.map(({ snapshot }) => snapshot)).size).toBe(1);
  expect(existsSync(join(home, "snapshots", steps[0]?.snapshot ?? ""))).toBe(true);
});
