import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { brig, containersOf } from "../support/cli.js";
import { testEngine } from "../support/engine.js";
import { changedPolicy } from "../support/policies.js";
import { type TemporaryDirectory, temporaryDirectory } from "../support/sandbox.js";

const fill = "head -c 100000000 /dev/zero > /tmp/x 2>/dev/null";
const sentence = "/tmp is full: 16 MiB are used";

let folder: TemporaryDirectory;
let workspace = "";
let policy = "";

beforeAll(async () => {
  folder = await temporaryDirectory();
  workspace = join(folder.path, "project");
  await mkdir(workspace);
  policy = await changedPolicy(folder.path, { sizeMb: 16 });
});

afterAll(() => folder[Symbol.asyncDispose]());

const parse = (text: string) =>
  text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));

async function startRun(name: string, steps: unknown[]) {
  const script = join(folder.path, `${name}.yaml`);
  const home = join(folder.path, name);
  await writeFile(script, JSON.stringify({ steps }));
  await mkdir(home);
  const run = brig(["run", "--json", "--policy", policy, "--script", script, "go"], {
    cwd: workspace,
    env: { BRIG_HOME: home, CODEX_HOME: home, OPENAI_API_KEY: "", OPENAI_BASE_URL: "" },
  });
  const records = async () => {
    const files = await readdir(join(home, "sessions"), { recursive: true, withFileTypes: true });
    const file = files.find((one) => one.name.endsWith(".jsonl"));
    return parse(await readFile(join(file?.parentPath ?? "", file?.name ?? ""), "utf8"));
  };
  return { run, records };
}

describe("why a command failed", () => {
  const asJson = { path: "/tmp", lacks: "bytes", limit: 16 * 1024 ** 2 };

  it("is said by brig exec: in one line, and with --json as fields", async () => {
    const command = ["exec", "--policy", policy];
    const plain = await brig([...command, "--", "sh", "-c", fill], { cwd: workspace });
    expect(plain).toMatchObject({ exitCode: 1, stderr: `brig: ${sentence}\n` });
    const { stdout } = await brig([...command, "--json", "--", "sh", "-c", fill], { cwd: workspace });
    expect(JSON.parse(stdout).causes).toEqual([{ kind: "full-directory", ...asJson, wasFull: false }]);
    const other = await brig([...command, "--json", "--", "sh", "-c", `echo '${sentence}' >&2; exit 1`], {
      cwd: workspace,
    });
    expect(JSON.parse(other.stdout)).toMatchObject({ exitCode: 1, stderr: `${sentence}\n`, causes: [] });
  });

  it("is said to the model, in the events and in the session file", async () => {
    const { run, records } = await startRun("full", [
      { calls: [{ shell_command: { command: fill } }] },
      {
        expect: [{ contains: sentence }],
        calls: [{ exec_command: { cmd: `rm /tmp/x; ${fill}` } }],
      },
      {
        expect: [{ contains: sentence }],
        calls: [{ shell_command: { command: "rm /tmp/x; exit 3" } }],
      },
      { expect: [{ notContains: "is full" }], text: "done" },
    ]);
    const done = await run;
    expect(done.exitCode, done.stdout + done.stderr).toBe(0);
    const causes = [{ kind: "full-directory", ...asJson, was_full: false }];
    const fullBefore = causes.map((cause) => ({ ...cause, was_full: true }));
    const items = parse(done.stdout).filter(
      ({ type, item }) => type === "item.completed" && "exit_code" in item,
    );
    expect(items.map(({ item }) => [item.exit_code, item.causes])).toEqual([
      [1, causes],
      [1, fullBefore],
      [3, undefined],
    ]);
    const calls = (await records()).filter(({ type }) => type === "brig.call");
    expect(calls.map(({ payload }) => [payload.exit_code, payload.causes])).toEqual([
      [1, causes],
      [1, fullBefore],
      [3, undefined],
    ]);
  });
});

it("why a sandbox has ended is in the events and in the session file", async () => {
  const { run, records } = await startRun("gone", [
    { calls: [{ shell_command: { command: "sleep 300", timeout_ms: 200_000 } }] },
    { text: "done" },
  ]);
  const engine = await testEngine();
  let container: string | undefined;
  await expect
    .poll(async () => {
      [container] = await containersOf(run.pid);
      return container !== undefined && (await engine.inspectContainer(container))?.running;
    })
    .toBe(true);
  await expect.poll(async () => JSON.stringify(await records().catch(() => []))).toContain("brig.sandbox");
  await engine.removeContainer(container ?? "");
  const done = await run;
  const message = "the sandbox's container was killed or removed from outside";
  const failure = { code: "sandbox.gone", reason: "killed", message };
  const failed = parse(done.stdout).find(({ type }) => type === "turn.failed");
  expect(failed, done.stdout + done.stderr).toMatchObject({ error: failure });
  const errors = (await records()).filter(({ payload }) => payload.type === "error");
  expect(errors.map(({ payload }) => payload)).toEqual([{ type: "error", ...failure }]);
});
