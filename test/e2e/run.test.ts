import { cp, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type BrigOptions, brig, containersOf } from "../support/cli.js";
import { brigHere } from "../support/cli-here.js";
import {
  callDone,
  messageDone,
  type Reply,
  respond,
  startResponsesServer,
} from "../support/responses-server.js";
import { testRuntime } from "../support/runtime-differences.js";
import { type TemporaryDirectory, temporaryDirectory } from "../support/sandbox.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const example = join(root, "examples/fix-failing-test");
const onRuntime = testRuntime === undefined ? [] : ["--runtime", testRuntime];

let folder: TemporaryDirectory;
let workspace = "";
let home = "";

beforeAll(async () => {
  folder = await temporaryDirectory();
  workspace = join(folder.path, "project");
  home = join(folder.path, "home");
  await cp(join(example, "project"), workspace, { recursive: true });
  await mkdir(home);
});

afterAll(() => folder[Symbol.asyncDispose]());

/** Nothing of this machine's own configuration or keys is used. */
function run(args: string[], options: BrigOptions = {}) {
  return brigHere(["run", ...onRuntime, ...args], ofTheTest(options));
}

/** The same, as a process. */
function start(args: string[], options: BrigOptions = {}) {
  return brig(["run", ...onRuntime, ...args], ofTheTest(options));
}

function ofTheTest(options: BrigOptions): BrigOptions {
  const env = { BRIG_HOME: home, CODEX_HOME: home, OPENAI_API_KEY: "", OPENAI_BASE_URL: "", ...options.env };
  return { cwd: workspace, ...options, env };
}

async function script(name: string, yaml: string): Promise<string> {
  const file = join(folder.path, `${name}.yaml`);
  await writeFile(file, yaml);
  return file;
}

function sessionOf(stderr: string): Promise<{ type: string; payload: Record<string, unknown> }[]> {
  const file = /^session file (\/.*)$/m.exec(stderr)?.[1] ?? "";
  return readFile(file, "utf8").then((text) =>
    text
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line)),
  );
}

/** The names of the tools in the first request; of a tool without a name, its kind. */
function offeredTo({ requests }: { requests: readonly { body: Record<string, unknown> }[] }): string[] {
  const tools = requests[0]?.body.tools as { type: string; name?: string }[];
  return tools.map(({ name, type }) => name ?? type);
}

describe("brig run with a script", () => {
  it("does a whole task: the result on stdout, the work on stderr, the fix in the workspace", async () => {
    const copy = join(folder.path, "fixed");
    await cp(join(example, "project"), copy, { recursive: true });
    const done = await start(["--script", join(example, "demo.yaml"), "-C", copy, "Fix it."]);
    expect(done.stderr).toContain(`M ${join(copy, "src/money.js")}`);
    for (const call of ["$ pwd", "• list_dir", "• grep_files", "• read_file"])
      expect(done.stderr).toContain(call);
    expect(done.exitCode).toBe(0);
    expect(done.stdout).toMatch(/^All tests pass now\.\n/);
    expect(await readFile(join(copy, "src/money.js"), "utf8")).toContain("left !== 0");
    expect(done.stderr + done.stdout).not.toContain("\x1b");
  });

  it("prints no warning of Node's over many calls at a time, or many responses", async () => {
    const read = (n: number) => ({
      read_file: { file_path: join(workspace, "package.json"), offset: (n % 3) + 1 },
    });
    const calls = Array.from({ length: 40 }, (_, n) => read(n));
    const responses = Array.from({ length: 15 }, () => ({ calls: [read(0)] }));
    const steps = [{ calls }, ...responses, { text: "done" }];
    const done = await start(["--script", await script("many", JSON.stringify({ steps })), "go"]);
    expect(done.stderr).toContain("55 tool calls");
    expect(done.stderr).not.toMatch(/Warning|\(node:/);
  });

  it("records the session with the proof of its policy", async () => {
    const file = await script(
      "record",
      'steps: [{ calls: [{ shell: { command: ["pwd"] } }] }, { text: hi }]',
    );
    const done = await run(["--script", file, "go"]);
    const records = await sessionOf(done.stderr);
    const payload = (type: string) => records.find((record) => record.type === type)?.payload;
    expect(payload("session_meta")).toMatchObject({ cwd: workspace, model_provider: "scripted" });
    expect(payload("brig.sandbox")).toMatchObject({
      image: "brig/base",
      proof: { imageId: expect.stringMatching(/^sha256:[0-9a-f]{64}$/) },
    });
    expect(payload("brig.call")).toMatchObject({
      name: "shell",
      success: true,
      exit_code: 0,
      duration_ms: expect.any(Number),
      user_ms: expect.any(Number),
      system_ms: expect.any(Number),
    });
    expect(payload("brig.call")?.max_rss_bytes).toBeGreaterThan(100_000);
    expect(JSON.stringify(records)).toContain(`${workspace}\\\\n`);
  });

  it("prints one JSON object to a line with --json", async () => {
    const file = await script(
      "json",
      "steps: [{ calls: [{ shell: { command: [echo, hi] } }] }, { text: done }]",
    );
    const done = await run(["--json", "--script", file, "go"]);
    const events = done.stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(events.map(({ type, item }) => (item === undefined ? type : `${type} ${item.type}`))).toEqual([
      "thread.started",
      "turn.started",
      "item.started command_execution",
      "item.completed command_execution",
      "item.completed agent_message",
      "turn.completed",
    ]);
    expect(events[3].item).toMatchObject({ command: "echo hi", aggregated_output: "hi\n", exit_code: 0 });
  });

  it("with --json says at the end why a turn failed, and exits with 1", async () => {
    await using server = await startResponsesServer([
      { kind: "status", status: 400, body: { error: { message: "what?" } } },
    ]);
    const done = await run(["--json", "go"], {
      env: { OPENAI_API_KEY: "k", OPENAI_BASE_URL: server.url },
    });
    expect(done.exitCode).toBe(1);
    expect(JSON.parse(done.stdout.trimEnd().split("\n").at(-1) ?? "")).toEqual({
      type: "turn.failed",
      error: { code: "model.failed", message: "HTTP 400 Bad Request: what?" },
    });
  });

  it("reads a file only as far as the policy lets it, and says so to the model", async () => {
    const file = await script(
      "read-only",
      `steps:
  - calls: [{ exec_command: { cmd: "echo x > made.txt" } }]
  - expect: { exitCode: 1, contains: "Read-only file system" }
    text: refused
`,
    );
    const done = await run(["-s", "read-only", "--script", file, "go"]);
    expect(done.stdout).toBe("refused\n");
    await expect(readFile(join(workspace, "made.txt"))).rejects.toMatchObject({ code: "ENOENT" });
  });

  it("keeps what a command prints from doing anything to the terminal", async () => {
    const file = await script(
      "hostile",
      `steps:
  - calls: [{ shell: { command: [printf, '\\033]0;owned\\007\\033[2Jred\\r\\n'] } }]
  - text: done
`,
    );
    const done = await run(["--script", file, "go"]);
    expect(done.stderr).toContain("│ red");
    expect(done.stderr).not.toContain("\x07");
    expect(done.stderr).not.toContain("\x1b");
  });

  it("fails with the script's line and the output when an expectation is not met", async () => {
    const file = await script(
      "unmet",
      `steps:
  - calls: [{ shell: { command: [echo, one] } }]
  - expect: { contains: two }
    text: done
`,
    );
    const done = await run(["--script", file, "go"]);
    expect(done.exitCode).toBe(1);
    expect(done.stdout).toBe("");
    expect(done.stderr).toContain(`${file}:3: the output of the previous call does not contain "two"`);
    expect(done.stderr).toContain('{"output":"one\\n"');
  });

  it("leaves no process of a session that was still running at its end", async () => {
    const file = await script(
      "background",
      "steps: [{ calls: [{ exec_command: { cmd: sleep 600, yield_time_ms: 250 } }] }, { text: done }]",
    );
    const running = start(["--script", file, "go"]);
    expect((await running).exitCode).toBe(0);
    expect(await containersOf(running.pid)).toEqual([]);
  });
});

describe("ctrl-C", () => {
  it("ends the turn in order: 130, the record whole, no container left", async () => {
    const file = await script(
      "long",
      "steps: [{ calls: [{ shell: { command: [sleep, '600'], timeout_ms: 600000 } }] }, { text: never }]",
    );
    const running = start(["--script", file, "go"]);
    let stderr = "";
    running.stderr.on("data", (chunk: Buffer) => {
      stderr += chunk.toString();
    });
    while (!stderr.includes("sleep 600")) await sleep(50);
    await sleep(200);
    running.kill("SIGINT");
    const done = await running;
    expect(done.exitCode).toBe(130);
    expect(done.stdout).toBe("");
    expect(await containersOf(running.pid)).toEqual([]);
    const records = await sessionOf(done.stderr);
    expect(records.at(-2)?.payload).toMatchObject({ type: "turn_aborted", reason: "interrupted" });
    expect(records.at(-1)?.payload).toMatchObject({ number: 1, status: "interrupted" });
    expect(JSON.stringify(records)).toContain("aborted by user");
  });

  it("with --json ends the items and not the turn", async () => {
    const file = await script(
      "long-json",
      "steps: [{ calls: [{ shell: { command: [sleep, '600'], timeout_ms: 600000 } }] }, { text: never }]",
    );
    const running = start(["--json", "--script", file, "go"]);
    let stdout = "";
    running.stdout.on("data", (chunk: Buffer) => {
      stdout += chunk.toString();
    });
    while (!stdout.includes("in_progress")) await sleep(50);
    running.kill("SIGINT");
    const done = await running;
    expect(done.exitCode).toBe(130);
    const events = done.stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(events.map(({ type }) => type)).toEqual([
      "thread.started",
      "turn.started",
      "item.started",
      "item.completed",
    ]);
    expect(await containersOf(running.pid)).toEqual([]);
  });
});

describe("brig run with a model", () => {
  it("asks the endpoint, runs its calls, and writes the last message to a file as well", async () => {
    await using server = await startResponsesServer([
      respond(callDone("a", "exec_command", { cmd: "cat package.json" })),
      respond(messageDone("It is tidy-invoice.")),
    ]);
    const schema = join(folder.path, "schema.json");
    const picture = join(folder.path, "dot.gif");
    const answer = join(folder.path, "answer.txt");
    await writeFile(schema, '{"type":"object"}');
    await writeFile(picture, Buffer.from("R0lGODlhAQABAAAAACwAAAAAAQABAAA=", "base64"));
    const flags = ["-m", "gpt-5-test", "-i", picture, "--output-schema", schema, "-o", answer];
    const done = await run([...flags, "-c", "model_reasoning_effort=low", "-"], {
      input: "What is it?",
      env: { OPENAI_API_KEY: "key-1", OPENAI_BASE_URL: server.url },
    });
    expect(done.stderr).toContain("1 tool call");
    expect(done.exitCode).toBe(0);
    expect(done.stdout).toBe("It is tidy-invoice.\n");
    expect(await readFile(answer, "utf8")).toBe("It is tidy-invoice.");
    const [first, second] = server.requests;
    expect(first?.headers.authorization).toBe("Bearer key-1");
    expect(first?.body).toMatchObject({
      model: "gpt-5-test",
      reasoning: { effort: "low", summary: "auto" },
      text: { format: { type: "json_schema", name: "codex_output_schema", schema: { type: "object" } } },
    });
    expect(JSON.stringify(first?.body.input)).toContain(`<cwd>${workspace}</cwd>`);
    expect(JSON.stringify(first?.body.input)).toContain("data:image/gif;base64,R0lGOD");
    expect(JSON.stringify(second?.body.input)).toContain('\\"name\\": \\"tidy-invoice\\"');
  });

  it("takes provider and model from config.toml, and warns of keys it does not know", async () => {
    await using server = await startResponsesServer([respond(messageDone("hello"))]);
    const configured = join(folder.path, "configured");
    await mkdir(configured, { recursive: true });
    await writeFile(
      join(configured, "config.toml"),
      `modle = "x"
[profiles.local]
model = "small"
model_provider = "mine"
[model_providers.mine]
base_url = "${server.url}"
env_key = "MINE_KEY"
http_headers = { "x-team" = "blue" }
`,
    );
    const done = await run(["-p", "local", "hi"], { env: { BRIG_HOME: configured, MINE_KEY: "k" } });
    expect(done.stderr).toContain("config.toml:1: unknown key `modle`; did you mean `model`?");
    expect(done.stdout).toBe("hello\n");
    expect(server.requests[0]?.body.model).toBe("small");
    expect(server.requests[0]?.headers).toMatchObject({ "x-team": "blue", authorization: "Bearer k" });
  });

  it("offers the tools and gives as much output as the configuration says", async () => {
    await using server = await startResponsesServer([
      respond(callDone("a", "shell_command", { command: "seq 1 1000" })),
      respond(messageDone("ok")),
    ]);
    const overrides = ["tools.shell=shell_command", "tool_output_token_limit=200", "allow_login_shell=false"];
    const done = await run(["-m", "gpt-5-test", ...overrides.flatMap((override) => ["-c", override]), "go"], {
      env: { OPENAI_API_KEY: "k", OPENAI_BASE_URL: server.url },
    });
    expect(done.exitCode).toBe(0);
    expect(offeredTo(server)).toContain("shell_command");
    expect(offeredTo(server)).not.toContain("exec_command");
    expect(JSON.stringify(server.requests[1]?.body.input)).toContain("…3093 chars truncated…");
  });

  it("writes the last message of a turn that is done, says when there is none, and else leaves the file alone", async () => {
    const answer = join(folder.path, "kept.txt");
    const refusal: Reply = { kind: "status", status: 400, body: { error: { message: "what?" } } };
    const ask = async (reply: Reply) => {
      await using server = await startResponsesServer([reply]);
      return await run(["-o", answer, "go"], {
        env: { OPENAI_API_KEY: "k", OPENAI_BASE_URL: server.url },
      });
    };
    await writeFile(answer, "of an earlier run");
    expect((await ask(refusal)).exitCode).toBe(1);
    expect(await readFile(answer, "utf8")).toBe("of an earlier run");
    const silent = await ask(respond());
    expect(silent).toMatchObject({ exitCode: 0, stdout: "" });
    expect(silent.stderr).toContain("there is no final message, so the file is empty");
    expect(await readFile(answer, "utf8")).toBe("");
    const unwritable = await run([
      "-o",
      "/proc/nonexistent/answer",
      "--script",
      await script("ok", "steps: [{ text: hi }]"),
      "go",
    ]);
    expect(unwritable.exitCode).toBe(2);
    expect(unwritable.stderr).toContain("/proc/nonexistent/answer");
  });

  it("appends what is piped in to the prompt", async () => {
    await using server = await startResponsesServer([respond(messageDone("ok"))]);
    await run(["sum it up"], {
      input: "the report",
      env: { OPENAI_API_KEY: "k", OPENAI_BASE_URL: server.url },
    });
    expect(JSON.stringify(server.requests[0]?.body.input)).toContain(
      "sum it up\\n\\n<stdin>\\nthe report\\n</stdin>",
    );
  });
});

it("brig run prints a final message that cannot be written to its file", async () => {
  const done = await run(["--script", await script("ok", "steps: [{ text: hi }]"), "-o", "/dev/full", "go"]);
  expect(done.stdout).toBe("hi\n");
  expect(done.stderr).toContain("the final message cannot be written to /dev/full");
  expect(done.exitCode).toBe(2);
});

it.each([
  ["a link in place of the file", (target: string) => `ln -sf ${target}/mine.md answers/answer.md`],
  ["a link in place of its directory", (target: string) => `rm -r answers; ln -s ${target} answers`],
])("brig run -o writes nothing through %s", async (what, command) => {
  const outside = join(folder.path, what);
  await mkdir(outside);
  await writeFile(join(outside, "mine.md"), "mine");
  await rm(join(workspace, "answers"), { recursive: true, force: true });
  await mkdir(join(workspace, "answers"));
  const calls = [{ shell: { command: ["sh", "-c", command(`'${outside}'`)] } }];
  const file = await script("links", JSON.stringify({ steps: [{ calls }, { text: "done" }] }));
  const given = ["-s", "workspace-write", "-o", "answers/answer.md", "--script", file, "go"];
  expect(await run(given)).toMatchObject({ exitCode: 2, stdout: "done\n" });
  expect(await readdir(outside)).toEqual(["mine.md"]);
  expect(await readFile(join(outside, "mine.md"), "utf8")).toBe("mine");
});

describe("brig run refuses", () => {
  it.each([
    ["no prompt", [], 2, "there is no prompt"],
    ["an unknown mode", ["-s", "none", "go"], 2, '"none" is not a sandbox mode'],
    [
      "a missing script",
      ["--script", "/proc/nonexistent.yaml", "go"],
      2,
      "cannot read the script /proc/nonexistent.yaml",
    ],
    ["a missing key", ["go"], 2, "OPENAI_API_KEY is not set"],
    [
      "a picture that is none",
      ["-i", "/etc/passwd", "--script", "ok", "go"],
      2,
      "is not a PNG, JPEG, GIF or WebP",
    ],
    ["a schema that is none", ["--output-schema", "/etc/passwd", "--script", "ok", "go"], 2, "is not JSON"],
    [
      "a file for the message in no directory",
      ["-o", "/proc/nonexistent/x", "--script", "ok", "go"],
      2,
      "/proc/nonexistent/x",
    ],
    ["a directory for the message", ["-o", "/tmp", "--script", "ok", "go"], 2, "cannot be written to /tmp"],
    ["an empty prompt", ["--script", "ok", ""], 2, "there is no prompt"],
    ["an unknown profile", ["-p", "nope", "go"], 2, "has no profile `nope`"],
    [
      "a workspace that is not there",
      ["-C", "/proc/nonexistent", "--script", "ok", "go"],
      2,
      "/proc/nonexistent",
    ],
  ])("%s", async (_, args, exitCode, message) => {
    const ok = await script("ok", "steps: [{ text: hi }]");
    const done = await run(args.map((arg) => (arg === "ok" ? ok : arg)));
    expect(done.stderr).toContain(message);
    expect(done.stdout).toBe("");
    expect(done.exitCode).toBe(exitCode);
  });

  it("a script that is wrong, with line and column", async () => {
    const file = await script("wrong", "steps:\n  - txt: hi\n");
    const done = await run(["--script", file, "go"]);
    expect(done.stderr).toContain(`${file}:2:5: unknown key \`txt\``);
    expect(done.exitCode).toBe(2);
  });

  it("to go on without an engine, with 125", async () => {
    const file = await script("calls", "steps: [{ calls: [{ shell: { command: [ls] } }] }, { text: hi }]");
    const done = await run(["--script", file, "go"], {
      env: { DOCKER_HOST: "unix:///proc/nonexistent.sock" },
    });
    expect(done.exitCode).toBe(125);
    expect(done.stderr).toContain("unix:///proc/nonexistent.sock");
  });

  it("with one JSON line when --json was asked for", async () => {
    const done = await run(["--json", "--script", "/proc/nonexistent.yaml", "go"]);
    expect(done.stdout.indexOf("\n")).toBe(done.stdout.length - 1);
    expect(JSON.parse(done.stdout)).toEqual({
      type: "error",
      code: "config.invalid",
      message: "cannot read the script /proc/nonexistent.yaml: no such file",
    });
    expect(done.exitCode).toBe(2);
  });
});

describe("the demo", () => {
  it("ends with what changed, the figures and the line for a real model, and leaves nothing behind", async () => {
    const done = await brig(["demo"], { env: { BRIG_HOME: home } });
    expect(done.exitCode).toBe(0);
    expect(done.stdout).toContain("--- a/src/money.js\n+++ b/src/money.js\n@@ -28,10 +28,11 @@");
    expect(done.stdout).toMatch(/^session start +\d+ ms/m);
    expect(done.stdout).toMatch(/^tool calls +7$/m);
    expect(done.stdout).toMatch(/^median call +[\d.]+ ms/m);
    const file = /^session file +(\S+)$/m.exec(done.stdout)?.[1] ?? "";
    expect(await readFile(file, "utf8")).toContain('"type":"session_meta"');
    expect(done.stdout).toContain("OPENAI_API_KEY=");
  });

  it("prints events alone with --json, and the figures in the last one", async () => {
    const { stdout, exitCode } = await brig(["demo", "--json"], { env: { BRIG_HOME: home } });
    const events = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(events[0]).toMatchObject({ type: "thread.started" });
    expect(events.at(-1)).toEqual({
      type: "demo.ended",
      session_file: expect.stringContaining(home),
      start_ms: expect.any(Number),
      tool_calls: 7,
      median_call_ms: expect.any(Number),
      patch: expect.stringContaining("+  const cent = Math.sign(cents);"),
    });
    expect(exitCode).toBe(0);
  });

  it.each([[], ["--json"]])("says what is missing where there is no engine: demo %s", async (...flags) => {
    const env = { BRIG_HOME: home, DOCKER_HOST: "unix:///proc/nonexistent.sock" };
    const done = await brig(["demo", ...flags], { env });
    expect(done.exitCode).toBe(125);
    expect(done.stdout + done.stderr).toMatch(/engine/);
    expect(done.stdout).not.toMatch(/In figures|demo\.ended/);
  });

  it("is ended by ctrl-C in order", async () => {
    const running = brig(["demo"], { env: { BRIG_HOME: home } });
    let stderr = "";
    running.stderr.on("data", (chunk: Buffer) => {
      stderr += chunk.toString();
    });
    while (!stderr.includes("node --test")) await sleep(20);
    running.kill("SIGINT");
    const done = await running;
    expect(done.exitCode).toBe(130);
    expect(done.stderr).toContain("interrupted");
    expect(done.stdout).not.toContain("In figures");
  });
});
