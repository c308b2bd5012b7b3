import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { promised } from "../guarantees.js";
import { brigHere } from "../support/cli-here.js";
import { testRuntime } from "../support/runtime-differences.js";
import { type TemporaryDirectory, temporaryDirectory } from "../support/sandbox.js";

const writes = "printf 'all:\\n' >Makefile; mkdir -p .vscode; echo '{}' >.vscode/tasks.json";
let folder: TemporaryDirectory;
let workspace = "";
let home = "";

beforeAll(async () => {
  folder = await temporaryDirectory();
  workspace = join(folder.path, "project");
  home = join(folder.path, "home");
  await mkdir(workspace);
  await mkdir(home);
});
afterAll(() => folder[Symbol.asyncDispose]());

function start(args: string[]) {
  const env = { BRIG_HOME: home, CODEX_HOME: home, OPENAI_API_KEY: "", OPENAI_BASE_URL: "" };
  return brigHere(args, { cwd: workspace, env });
}

async function run(args: string[]) {
  const file = join(folder.path, "steps.yaml");
  const steps = [{ calls: [{ shell: { command: ["sh", "-c", writes] } }] }, { text: "done" }];
  await writeFile(file, JSON.stringify({ steps }));
  const runtime = testRuntime === undefined ? [] : ["--runtime", testRuntime];
  return await start(["run", ...runtime, "--script", file, ...args, "go"]);
}

async function sessionRecords(): Promise<{ type: string; payload: Record<string, unknown> }[]> {
  const names = await readdir(home, { recursive: true });
  const [file = ""] = names.filter((name) => /sessions\/.*\.jsonl$/.test(name)).toSorted();
  return (await readFile(join(home, file), "utf8"))
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
}

const expected = expect.arrayContaining([
  expect.objectContaining({
    path: expect.stringMatching(/project\/Makefile$/),
    reasons: ["runs"],
    sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
  }),
  expect.objectContaining({ path: expect.stringMatching(/tasks\.json$/) }),
]);

describe("the receipt of a session", () => {
  it("is one block on stderr, and nothing where nothing is to be told", async () => {
    const done = await start(["exec", "--", "sh", "-c", writes]);
    expect(done.exitCode).toBe(0);
    expect(done.stderr).toMatch(
      /^brig: this session made or changed .*\n {2}\/.*tasks\.json: can run .*: VS Code, .*\(sha256 [0-9a-f]{12}…\)\n {2}\/.*Makefile: .*: make .*\n$/m,
    );
    expect((await start(["exec", "--", "true"])).stderr).toBe("");
  });

  it("is shown after a call of one tool, and in the object that it prints with --json", async () => {
    const call = ["shell_command", JSON.stringify({ command: writes })];
    const shown = await start(["tool", ...call]);
    expect(shown.stderr).toMatch(/tasks\.json: can run by itself/);
    const done = await start(["tool", "--json", ...call]);
    expect(done.stderr).toBe("");
    expect(JSON.parse(done.stdout)).toMatchObject({ success: true, receipt: { findings: expected } });
  });

  it("is in the object that exec prints with --json", async () => {
    const done = await start(["exec", "--json", "--", "sh", "-c", writes]);
    expect(done.stderr).toBe("");
    expect(JSON.parse(done.stdout)).toMatchObject({
      receipt: { findings: expected, omitted: 0, incomplete: null },
    });
  });

  it(promised("kept.receipt", "is the last event of --json, and in the session file"), async () => {
    const done = await run(["--json"]);
    const last = JSON.parse(done.stdout.trimEnd().split("\n").at(-1) ?? "");
    expect(last).toMatchObject({ type: "session.receipt", receipt: { findings: expected } });
    expect((await sessionRecords()).at(-1)).toMatchObject({
      type: "brig.receipt",
      payload: { findings: expected },
    });
  });

  it("ends what a run shows on stderr", async () => {
    const { stderr, stdout } = await run([]);
    expect(stdout).toBe("done\n");
    expect(stderr).toContain("review them before you run anything there:\n");
    expect(stderr).toMatch(/Makefile: can run by itself/);
  });
});
