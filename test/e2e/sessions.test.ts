import { access, cp, mkdir, readdir, readFile, rename, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { execa } from "execa";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type BrigOptions, brig, program } from "../support/cli.js";
import { brigHere } from "../support/cli-here.js";
import {
  callDone,
  messageDone,
  reasoningDone,
  respond,
  startResponsesServer,
} from "../support/responses-server.js";
import { testRuntime } from "../support/runtime-differences.js";
import { type TemporaryDirectory, temporaryDirectory } from "../support/sandbox.js";
import { Terminal } from "../support/terminal.js";

const codexRollout = fileURLToPath(new URL("../fixtures/rollouts/codex-0.169.jsonl", import.meta.url));
const onRuntime = testRuntime === undefined ? [] : ["--runtime", testRuntime];

let folder: TemporaryDirectory;
let workspace = "";
let home = "";
let homes = 0;

beforeAll(async () => {
  folder = await temporaryDirectory();
});

beforeEach(async () => {
  home = join(folder.path, `home-${homes}`);
  workspace = join(folder.path, `project-${homes++}`);
  await mkdir(home);
  await mkdir(workspace);
  await writeFile(join(workspace, "a.txt"), "one\n");
});

afterAll(() => folder[Symbol.asyncDispose]());

/** Nothing of this machine's own configuration, sessions or keys is used. */
function run(args: string[], options: BrigOptions = {}) {
  return brigHere(onTheRuntime(args), ofTheTest(options));
}

/** The same, as a process. */
function start(args: string[], options: BrigOptions = {}) {
  return brig(onTheRuntime(args), ofTheTest(options));
}

function onTheRuntime([command = "", ...rest]: string[]): string[] {
  return [command, ...(["run", "resume", "replay"].includes(command) ? onRuntime : []), ...rest];
}

function ofTheTest(options: BrigOptions = {}): BrigOptions {
  const env = { BRIG_HOME: home, CODEX_HOME: home, OPENAI_API_KEY: "k", OPENAI_BASE_URL: "", ...options.env };
  return { cwd: workspace, ...options, env };
}

async function script(name: string, yaml: string): Promise<string> {
  const file = join(home, `${name}.yaml`);
  await writeFile(file, yaml);
  return file;
}

/** A session that made one call and said something. */
async function recorded(
  yaml = "steps: [{ calls: [{ shell: { command: [cat, a.txt] } }] }, { text: read it }]",
) {
  const done = await run(["run", "--script", await script("first", yaml), "Look at a.txt."]);
  expect(done.stderr).toContain("session file");
  return { file: fileOf(done.stderr), id: idOf(done.stderr) };
}

function fileOf(stderr: string): string {
  return /^session file (\/.*)$/m.exec(stderr)?.[1] ?? "";
}

function idOf(stderr: string): string {
  return /rollout-.{19}-(.*)\.jsonl$/m.exec(fileOf(stderr))?.[1] ?? "";
}

async function openTerminal(args: string[]): Promise<Terminal> {
  const env = { BRIG_HOME: home, CODEX_HOME: home, OPENAI_API_KEY: "", NO_COLOR: "" };
  return await Terminal.open(args, { cwd: workspace, env });
}

async function recordsOf(file: string): Promise<{ type: string; payload: Record<string, unknown> }[]> {
  const lines = (await readFile(file, "utf8")).trimEnd().split("\n");
  return lines.map((line) => JSON.parse(line));
}

async function sessionFiles(): Promise<string[]> {
  const all = await readdir(home, { recursive: true });
  return all.filter((name) => name.endsWith(".jsonl") && name.includes("rollout-"));
}

function texts(input: readonly Record<string, unknown>[] = []): string[] {
  return input.map((item) => JSON.stringify(item.content ?? item.output ?? item.arguments));
}

describe("brig resume", () => {
  it("goes on with the conversation, the model and the instructions it had, in the same file", async () => {
    await using server = await startResponsesServer([
      respond(callDone("a", "exec_command", { cmd: "cat a.txt" })),
      respond(messageDone("It says one.")),
      respond(messageDone("Still one.")),
    ]);
    const env = { OPENAI_BASE_URL: server.url };
    const first = await run(["run", "-m", "gpt-5-test", "What is in a.txt?"], { env });
    const second = await start(["resume", "--last", "And now?"], { env });
    expect(second.stderr).toContain(`session file ${fileOf(first.stderr)}`);
    expect(second.stdout).toBe("Still one.\n");
    expect(second.exitCode).toBe(0);
    const [before, , after] = server.requests.map(({ body }) => body);
    expect(after).toMatchObject({ model: "gpt-5-test", instructions: before?.instructions });
    expect(after?.prompt_cache_key).toBe(before?.prompt_cache_key);
    // What the model was told of its surroundings still holds: it is not told again.
    expect(after?.input.slice(0, before?.input.length)).toEqual(before?.input);
    expect(texts(after?.input.slice(before?.input.length))).toEqual([
      expect.stringContaining("cat a.txt"),
      expect.stringContaining("one"),
      expect.stringContaining("It says one."),
      expect.stringContaining("And now?"),
    ]);
    const records = await recordsOf(fileOf(first.stderr));
    expect(records.filter(({ type }) => type === "session_meta")).toHaveLength(1);
    expect(records.filter(({ type }) => type === "brig.turn").map(({ payload }) => payload.number)).toEqual([
      1, 2,
    ]);
    expect(await sessionFiles()).toHaveLength(1);
  });

  it("tells the model what is different now", async () => {
    await using server = await startResponsesServer([respond(messageDone("ok"))]);
    const env = { OPENAI_BASE_URL: server.url };
    await run(["run", "-m", "gpt-5-test", "one"], { env });
    await run(["resume", "--last", "-s", "read-only", "two"], { env });
    const [before, after] = server.requests.map(({ body }) => body.input);
    const added = texts(after?.slice(before?.length)).join("\n");
    expect(added).toContain("`sandbox_mode` is `read-only`");
    expect(added).not.toContain("<cwd>");
  });

  it("hands a model's encrypted thoughts on to the provider they are from, and to no other", async () => {
    await using server = await startResponsesServer([
      respond(reasoningDone("Hm.", "ENCRYPTED"), messageDone("one")),
      respond(messageDone("two")),
    ]);
    const env = { OPENAI_BASE_URL: server.url };
    await run(["run", "-m", "gpt-5-test", "one"], { env });
    await run(["resume", "--last", "two"], { env });
    const other = ["model_provider=mine", `model_providers.mine={base_url="${server.url}"}`];
    await run(["resume", "--last", "-m", "small", ...other.flatMap((key) => ["-c", key]), "three"], { env });
    const inputs = server.requests.map(({ body }) => JSON.stringify(body.input));
    expect(inputs.map((input) => input.includes("ENCRYPTED"))).toEqual([false, true, false]);
    expect(inputs[2]).toContain('"two"');
  });

  it("finds a session by the start of its id and works in its directory, wherever it is called", async () => {
    const { id } = await recorded();
    const again = await script(
      "again",
      "steps: [{ calls: [{ shell: { command: [pwd] } }] }, { text: again }]",
    );
    const done = await run(["resume", id.slice(0, 18), "--script", again, "go on"], { cwd: home });
    expect(done.stderr).toContain(`working in the session's directory, ${workspace}`);
    expect(done.stderr).toContain(`│ ${workspace}`);
    expect(done.stdout).toBe("again\n");
  });

  it("goes on after a kill -9 in the middle of a call, which the model learns was aborted", async () => {
    const long = await script(
      "long",
      "steps: [{ text: I wait., calls: [{ shell: { command: [sleep, '600'], timeout_ms: 600000 } }] }, { text: never }]",
    );
    const running = start(["run", "--script", long, "Wait."]);
    let stderr = "";
    running.stderr.on("data", (chunk: Buffer) => {
      stderr += chunk.toString();
    });
    while (!stderr.includes("sleep 600")) await sleep(50);
    running.kill("SIGKILL");
    await running;
    const [name = ""] = await sessionFiles();
    const file = join(home, name);
    await writeFile(file, `${await readFile(file, "utf8")}{"timestamp":"20`);
    await using server = await startResponsesServer([respond(messageDone("I am back."))]);
    const done = await run(["resume", "--last", "-m", "gpt-5-test", "Go on."], {
      env: { OPENAI_BASE_URL: server.url },
    });
    expect(done.stderr).toContain(
      "the session file is damaged: its last line was cut off when it was written",
    );
    expect(done.stdout).toBe("I am back.\n");
    expect(texts(server.requests[0]?.body.input).join("\n")).toMatch(
      /I wait\.[\s\S]*sleep[\s\S]*"aborted"[\s\S]*Go on\./,
    );
    expect((await run(["sessions", "list"])).stdout).toContain("completed");
    // The killed one's container would end by itself within a minute.
    await start(["gc"]);
  });

  it("is refused while another process has the session, whose number it tells; a fork is not", async () => {
    const slow =
      "steps: [{ calls: [{ shell: { command: [sleep, '600'], timeout_ms: 600000 } }] }, { text: never }]";
    const running = start(["run", "--script", await script("slow", slow), "Wait."]);
    let stderr = "";
    running.stderr.on("data", (chunk: Buffer) => {
      stderr += chunk.toString();
    });
    while (!stderr.includes("sleep 600")) await sleep(50);
    const quick = await script("quick", "steps: [{ text: hi }]");
    const refused = await run(["resume", "--last", "--script", quick, "go on"]);
    expect(refused.exitCode).toBe(1);
    expect(refused.stderr).toContain(`is in use by process ${running.pid}`);
    expect((await run(["sessions", "list"])).stdout).toContain("in use");
    const deleted = await run([
      "sessions",
      "delete",
      "--yes",
      (await sessionFiles())[0]?.slice(-41, -6) ?? "",
    ]);
    expect(deleted.exitCode).not.toBe(0);
    const forked = await run(["resume", "--last", "--fork", "--script", quick, "go on"]);
    expect(forked.stdout).toBe("hi\n");
    expect(await sessionFiles()).toHaveLength(2);
    running.kill("SIGINT");
    await running;
  });

  it("is a conversation on a terminal where no prompt is given, in the same file", async () => {
    const { file } = await recorded();
    const play = await script("play", "steps: [{ text: Good to see you. }, { text: Bye. }]");
    await using terminal = await openTerminal(["resume", "--last", "--script", play, ...onRuntime]);
    await terminal.waitForScreen(/Look at a\.txt\.[\s\S]*read it[\s\S]*^›\s*$/m);
    terminal.type("hello again\r");
    await terminal.waitForScreen(/Good to see you\./);
    // Until nothing runs any more.
    await terminal.waitForScreen(/^(?![\s\S]*◦ )[\s\S]*\n›\s*\n/);
    terminal.type("\x04");
    expect((await terminal.end()).exitStatus).toBe(0);
    const records = await recordsOf(file);
    expect(records.filter(({ type }) => type === "session_meta")).toHaveLength(1);
    const prompts = records.filter(({ payload }) => payload.type === "user_message");
    expect(prompts.map(({ payload }) => payload.message)).toEqual(["Look at a.txt.", "hello again"]);
    expect((await readdir(dirname(file))).filter((name) => name.endsWith(".lock"))).toEqual([]);
  });

  it.each([
    [["resume"], 2, "no session given"],
    [["resume", "--last", "x"], 2, "no session has run in"],
    [["resume", "--all", "--last", "x"], 2, "there is no session yet"],
    [["resume", "nonesuch", "x"], 2, 'there is no session "nonesuch"'],
    [["resume", "--last", "a", "b"], 2, "--last cannot be combined with a session's id"],
    [["resume", "--at", "3", "nonesuch", "x"], 2, 'there is no session "nonesuch"'],
    [["resume", "--at", "0", "nonesuch", "x"], 2, "It must be the number of a step"],
  ])("%j is refused", async (args, status, message) => {
    const done = await run(args, { input: "" });
    expect(done.stderr).toContain(message);
    expect(done.exitCode).toBe(status);
  });
});

describe("brig sessions", () => {
  it("lists sessions, and tells programs as JSON", async () => {
    const { id, file } = await recorded();
    expect((await run(["sessions"])).stdout).toMatch(
      new RegExp(`${id} +completed +1 .*${workspace} +Look at a\\.txt\\.`),
    );
    const listed = JSON.parse((await run(["sessions", "list", "--json"])).stdout);
    expect(listed).toEqual([
      expect.objectContaining({
        id,
        path: file,
        cwd: workspace,
        status: "completed",
        turns: 1,
        model: "scripted",
      }),
    ]);
  });

  it("lists more sessions than a process may have files open", async () => {
    const folder = join(home, "sessions/2026/01/02");
    await mkdir(folder, { recursive: true });
    const meta = { type: "session_meta", payload: { cwd: "/w" } };
    const name = (n: number) => `rollout-2026-01-02T03-04-05-s${n}.jsonl`;
    const write = async (_: unknown, n: number) => {
      const record = { ...meta, payload: { ...meta.payload, id: `s${n}` } };
      await writeFile(join(folder, name(n)), `${JSON.stringify(record)}\n`);
    };
    await Promise.all(Array.from({ length: 400 }, write));
    const call = `ulimit -n 200; exec "$@"`;
    const args = ["-c", call, "bash", process.execPath, program, "sessions", "--all", "--json"];
    const { stdout } = await execa("bash", args, { env: { BRIG_HOME: home } });
    const listed: { cwd: string | null }[] = JSON.parse(stdout);
    expect(listed).toHaveLength(400);
    expect(listed.every(({ cwd }) => cwd === "/w")).toBe(true);
  });

  it("shows what was said and done, with nothing in it that a terminal obeys", async () => {
    const hostile = String.raw`steps: [{ calls: [{ shell: { command: [printf, '\033]0;owned\007\033[2Jred\r\n'] } }] }, { text: "\e[31mdone" }]`;
    const { id } = await recorded(hostile);
    const shown = await run(["sessions", "show", id]);
    expect(shown.stdout).toMatch(/\[4\] user .*\n {4}Look at a\.txt\.\n/);
    expect(shown.stdout).toContain("│ red");
    for (const control of ["\x07", "\x1b", "\r"]) expect(shown.stdout).not.toContain(control);
    const steps = (await run(["sessions", "show", id, "--json"])).stdout.trimEnd().split("\n");
    expect(steps.map((line) => JSON.parse(line).source)).toEqual([
      "system",
      "system",
      "system",
      "user",
      "agent",
      "agent",
    ]);
  });

  it("shows of each instruction one line, and all of it with --full", async () => {
    const advice = `${"Tests go into test/. ".repeat(30)}\nTHE LAST LINE\n`;
    await writeFile(join(workspace, "AGENTS.md"), advice);
    const { id } = await recorded();
    const shown = (await run(["sessions", "show", id])).stdout;
    const upToPrompt = shown.slice(0, shown.indexOf("Look at a.txt.")).split("\n");
    const folds = upToPrompt.filter((line) =>
      / … \d{2,} characters not shown; --full shows them$/.test(line),
    );
    expect(folds.some((line) => line.startsWith("    <permissions instructions> …"))).toBe(true);
    expect(folds.some((line) => line.startsWith("    # AGENTS.md instructions for /"))).toBe(true);
    expect(folds.some((line) => line.startsWith("    You are "))).toBe(true);
    expect(shown).not.toContain("sandbox_mode");
    expect(shown).not.toContain("THE LAST LINE");
    // The folds and headings, and a line between two steps.
    expect(upToPrompt.length).toBeLessThan(20);
    const full = (await run(["sessions", "show", "--full", id])).stdout;
    expect(full).toContain("THE LAST LINE");
    expect(full).toContain("`sandbox_mode` is");
  });

  it("reads a file of Codex, exports it, and takes it over", async () => {
    const shown = await run(["sessions", "show", codexRollout]);
    expect(shown.stdout).toContain("by codex_exec 0.169.0");
    const out = join(home, "trajectory.json");
    await run(["sessions", "export", codexRollout, "-o", out]);
    const trajectory = JSON.parse(await readFile(out, "utf8"));
    expect(trajectory).toMatchObject({ schema_version: "ATIF-v1.7", agent: { name: "codex_exec" } });
    const nowhere = join(home, "nowhere", "trajectory.json");
    const lost = await run(["sessions", "export", codexRollout, "-o", nowhere]);
    expect(lost.exitCode).toBe(2);
    expect(lost.stderr).toBe(
      `brig: ${nowhere} cannot be written: ENOENT: no such file or directory, open '${nowhere}'\n`,
    );
    const forked = await run(["sessions", "fork", codexRollout, "--at", "4"]);
    const id = forked.stdout.trim();
    const listed = JSON.parse((await run(["sessions", "list", "--json"])).stdout);
    expect(listed).toEqual([expect.objectContaining({ id, forkedFromId: trajectory.session_id })]);
  });

  it("goes on with a copy of somebody else's file where it is called, and not where the file says", async () => {
    const { file } = await recorded();
    const victim = join(folder.path, `victim-${homes}`);
    await mkdir(victim);
    const shared = join(folder.path, `shared-${homes}.jsonl`);
    await writeFile(
      shared,
      (await readFile(file, "utf8")).replaceAll(JSON.stringify(workspace), JSON.stringify(victim)),
    );
    const first = (await run(["sessions", "fork", shared])).stdout.trim();
    // A copy of the copy knows no better.
    const id = (await run(["sessions", "fork", first])).stdout.trim();
    const touch = await script(
      "touch",
      "steps: [{ calls: [{ shell: { command: [touch, planted] } }] }, { text: done }]",
    );
    const resumed = await run(["resume", id, "--script", touch, "Go on."]);
    expect(resumed.stderr).toContain(
      `working in the current directory; the copied session file names ${victim}`,
    );
    expect(await readdir(victim)).toEqual([]);
    expect(await readdir(workspace)).toContain("planted");
    const again = await run(["resume", id, "--script", touch, "Go on."], { cwd: folder.path });
    expect(again.stderr).toContain(`working in the session's directory, ${workspace};`);
    const replayed = await run(["replay", shared, "--in-place"]);
    expect(replayed).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining("name the directory with -C"),
    });
  });

  it("deletes a session that it is told to delete, and asks nobody who is not there", async () => {
    const { id } = await recorded();
    const refused = await run(["sessions", "delete", id]);
    expect(refused).toMatchObject({ exitCode: 2, stderr: expect.stringContaining("--yes") });
    expect((await run(["sessions", "delete", "--yes", id.slice(0, 20)])).stderr).toBe(`deleted ${id}\n`);
    expect((await run(["sessions"])).stdout).toBe("no sessions\n");
    expect((await run(["sessions", "show", id])).exitCode).toBe(2);
  });

  it("deletes one where nothing can be put beside it, as on a full disk", async () => {
    const { id, file } = await recorded();
    // A name at its greatest length leaves none for what is put beside it.
    const long = join(dirname(file), `rollout-2026-01-02T03-04-05-${"l".repeat(221)}.jsonl`);
    await rename(file, long);
    expect((await run(["sessions", "delete", "--yes", "lll"])).stderr).toMatch(/^deleted l+\n$/);
    await expect(access(long)).rejects.toThrow(/ENOENT/);
    expect((await run(["sessions", "delete", "--yes", id])).exitCode).toBe(2);
  });

  it("asks on a terminal before it deletes", async () => {
    const { id } = await recorded();
    for (const [answer, left] of [
      ["n", 1],
      ["y", 0],
    ] as const) {
      await using terminal = await openTerminal(["sessions", "delete", id]);
      await terminal.waitForScreen(/Look at a\.txt\.[\s\S]*Delete it\? \[y\/N\]/);
      terminal.type(`${answer}\r`);
      expect((await terminal.end()).exitStatus).toBe(left);
      expect(await sessionFiles()).toHaveLength(left);
    }
  });

  it("adds nothing to a session that goes on where nothing is to be kept", async () => {
    const { file } = await recorded();
    const before = await readFile(file);
    const hi = await script("hi", "steps: [{ text: hi }]");
    const done = await run(["resume", "--last", "--ephemeral", "--script", hi, "x"]);
    expect(done.stdout).toBe("hi\n");
    expect(await readFile(file)).toEqual(before);
  });

  it("keeps nothing where that is asked for, by flag or configuration", async () => {
    const hi = await script("hi", "steps: [{ text: hi }]");
    const done = await run(["run", "--ephemeral", "--script", hi, "x"]);
    expect(done.stderr).toContain("session file none");
    await writeFile(join(home, "config.toml"), '[history]\npersistence = "none"\n');
    await run(["run", "--script", hi, "x"]);
    expect(await sessionFiles()).toEqual([]);
  });

  it("goes on where the disk gets full, and says that the record is not complete", async () => {
    // The disk takes the place of the home, and hides what is in it.
    const long = join(workspace, "full.yaml");
    const step = { calls: [{ shell: { command: ["seq", "30000"] } }] };
    await writeFile(long, JSON.stringify({ steps: [step, step, step, { text: "all done" }] }));
    const mounted = 'mount -t tmpfs -o size=32k none "$0" && exec "$@"';
    const command = [process.execPath, program, "run", ...onRuntime, "--script", long, "x"];
    const done = await execa("unshare", ["-Urm", "sh", "-c", mounted, home, ...command], {
      cwd: workspace,
      env: { BRIG_HOME: home, CODEX_HOME: home },
      stdin: "ignore",
      reject: false,
    });
    expect(done).toMatchObject({ exitCode: 0, stdout: "all done" });
    expect(done.stderr).toMatch(
      /is incomplete, \d+ records are missing at its end: no space left on the device\s*$/,
    );
  });

  it("does not run at all where the record cannot be kept, and says how it can", async () => {
    const file = join(home, "file");
    await writeFile(file, "");
    const hi = await script("hi", "steps: [{ text: hi }]");
    const done = await run(["run", "--script", hi, "x"], { env: { BRIG_HOME: join(file, "home") } });
    expect(done.exitCode).toBe(2);
    expect(done.stdout).toBe("");
    expect(done.stderr).toMatch(/cannot create the session file[\s\S]*--ephemeral/);
  });
});

describe("brig replay", () => {
  const work = `steps:
  - calls:
      - { shell: { command: [bash, -c, "pwd; cat a.txt"] } }
      - { exec_command: { cmd: "echo two >> a.txt; ls -1" } }
  - text: done
`;

  it("finds nothing different where the files are those it started with, and leaves them as they are", async () => {
    const before = join(folder.path, `before-${homes}`);
    await cp(workspace, before, { recursive: true });
    const { id } = await recorded(work);
    const done = await start(["replay", id, "-C", before]);
    expect(done.stdout).toContain("the final files are the same");
    expect(done.stdout).toContain("the same: 2 calls run again, no output differs");
    expect(done.exitCode).toBe(0);
    expect(await readFile(join(before, "a.txt"), "utf8")).toBe("one\n");
  });

  it("compares outputs alone where the files were not to be recorded", async () => {
    const file = await script("unrecorded", work);
    const { stderr } = await run(["run", "--no-tree-record", "--script", file, "go"]);
    expect((await recordsOf(fileOf(stderr))).map(({ type }) => type)).not.toContain("brig.tree");
    await writeFile(join(workspace, "a.txt"), "one\n");
    const report = JSON.parse((await run(["replay", idOf(stderr), "--json"])).stdout);
    const tree = { kind: "not compared", reason: "the session did not record it" };
    expect(report).toMatchObject({ same: true, calls: 2, tree });
  });

  it("exits with 1 and says what is different where something is", async () => {
    const { id } = await recorded(work);
    const done = await run(["replay", id]);
    expect(done).toMatchObject({ exitCode: 1 });
    expect(done.stdout).toMatch(/\[5\] shell .*\n {4}the output differs from line 5 on:\n/);
    expect(done.stdout).toContain("    changed a.txt");
    const report = JSON.parse((await run(["replay", id, "--json"])).stdout);
    expect(report).toMatchObject({ same: false, calls: 2, tree: { kind: "different" }, source: workspace });
    expect(await readFile(join(workspace, "a.txt"), "utf8")).toBe("one\ntwo\n");
  });

  it("gives full access or a network again only where it is told to", async () => {
    const hi = await script("hi", "steps: [{ calls: [{ shell: { command: [echo, hi] } }] }, { text: done }]");
    for (const [flags, said] of [
      [["-s", "danger-full-access"], "the session ran with full access"],
      [["--network", "full"], "the session had a network"],
    ] as const) {
      const id = idOf((await run(["run", ...flags, "--script", hi, "x"])).stderr);
      const refused = await run(["replay", id]);
      expect(refused).toMatchObject({ exitCode: 2, stderr: expect.stringContaining(said) });
      expect(refused.stderr).toContain("--allow-full-access");
      expect((await run(["replay", id, "--allow-full-access"])).stdout).toContain(
        "the same: 1 call run again",
      );
    }
  });

  it("works in the directory itself where it is told to", async () => {
    const { id } = await recorded(work);
    await run(["replay", id, "--in-place"]);
    expect(await readFile(join(workspace, "a.txt"), "utf8")).toBe("one\ntwo\ntwo\n");
  });

  it("has nothing to do for a session without calls", async () => {
    const { id } = await recorded("steps: [{ text: hi }]");
    expect(await run(["replay", id])).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining("no tool calls"),
    });
  });
});
