import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { brig, containersOf } from "../support/cli.js";
import { testEngine } from "../support/engine.js";
import { silencedEngine } from "../support/engine-proxy.js";
import { type TemporaryDirectory, temporaryDirectory } from "../support/sandbox.js";

const lease = {
  code: "sandbox.gone",
  reason: "lease",
  message: "the sandbox ended because nobody was connected for the length of its lease",
};

let folder: TemporaryDirectory;
let workspace = "";

beforeAll(async () => {
  folder = await temporaryDirectory();
  workspace = join(folder.path, "project");
  await mkdir(workspace);
});

afterAll(() => folder[Symbol.asyncDispose]());

/** Starts brig with a home of its own. */
async function start(name: string, args: string[], endpoint: string) {
  const home = join(folder.path, name);
  await mkdir(home);
  const env = {
    BRIG_HOME: home,
    CODEX_HOME: home,
    OPENAI_API_KEY: "",
    OPENAI_BASE_URL: "",
    DOCKER_HOST: endpoint,
  };
  return { home, run: brig(args, { cwd: workspace, env }) };
}

/** The container in which a program's command has begun. */
async function begunContainer(pid: number | undefined, file: string): Promise<string> {
  const begun = () => readFile(join(workspace, file), "utf8").catch(() => "");
  await expect.poll(begun, { timeout: 60_000 }).toBe("begun\n");
  const [container = ""] = await containersOf(pid);
  expect(await (await testEngine()).inspectContainer(container)).toMatchObject({ running: true });
  return container;
}

/** Stops programs, and breaks their streams meanwhile, until their containers have ended. */
async function stopUntilEnded(
  pids: readonly number[],
  breakStreams: () => void,
  containers: readonly string[],
) {
  const engine = await testEngine();
  const runs = async () => {
    const states = await Promise.all(containers.map((id) => engine.inspectContainer(id)));
    return states.some((state) => state?.running);
  };
  for (const pid of pids) process.kill(pid, "SIGSTOP");
  try {
    breakStreams();
    await expect.poll(runs, { timeout: 150_000, interval: 500 }).toBe(false);
  } finally {
    for (const pid of pids) process.kill(pid, "SIGCONT");
  }
}

const parsed = (text: string) =>
  text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));

it("a lease that is over is said to be why: in the error, in the event and in the session file", async () => {
  await using proxy = await silencedEngine();
  const script = join(folder.path, "script.yaml");
  const command = (name: string) => `echo begun > ${name}; sleep 900`;
  const call = { shell_command: { command: command("of-session"), timeout_ms: 900_000 } };
  await writeFile(script, JSON.stringify({ steps: [{ calls: [call] }, { text: "done" }] }));
  const session = await start("session", ["run", "--json", "--script", script, "go"], proxy.endpoint);
  const single = await start(
    "single",
    ["exec", "--json", "--", "sh", "-c", command("of-exec")],
    proxy.endpoint,
  );
  const containers = [
    await begunContainer(session.run.pid, "of-session"),
    await begunContainer(single.run.pid, "of-exec"),
  ];
  const pids = [session.run.pid ?? 0, single.run.pid ?? 0];
  await stopUntilEnded(pids, proxy.breakStreams, containers);

  const exec = await single.run;
  expect(exec.exitCode).toBe(125);
  expect(JSON.parse(exec.stdout)).toMatchObject({ error: lease });

  const done = await session.run;
  const failed = parsed(done.stdout).find(({ type }) => type === "turn.failed");
  expect(failed, done.stdout + done.stderr).toMatchObject({ error: lease });
  const files = await readdir(join(session.home, "sessions"), { recursive: true, withFileTypes: true });
  const file = files.find(({ name }) => name.endsWith(".jsonl"));
  const records = parsed(await readFile(join(file?.parentPath ?? "", file?.name ?? ""), "utf8"));
  const errors = records.filter(({ payload }) => payload.type === "error");
  expect(errors.map(({ payload }) => payload)).toEqual([{ type: "error", ...lease }]);
}, 240_000);
