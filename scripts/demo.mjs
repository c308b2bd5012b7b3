// The demo: a scripted model finds and fixes the bug in examples/fix-failing-test in a real container. It runs the built command
// line on a copy of the project and prints a summary. The exit status is that of `brig run`, or 1.
import { spawn } from "node:child_process";
import { cp, mkdtemp, readdir, readFile, realpath, rm } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { diffTrees } from "./demo/unified-diff.js";

const root = fileURLToPath(new URL("..", import.meta.url));
const example = join(root, "examples/fix-failing-test");
const prompt = "The tests of this project fail. Find the bug, fix it, and show that they pass.";

const folder = await realpath(await mkdtemp(join(tmpdir(), "brig-demo-")));
try {
  process.exitCode = await runDemo(join(folder, "project"));
} finally {
  await rm(folder, { recursive: true, force: true });
}

async function runDemo(project) {
  await cp(join(example, "project"), project, { recursive: true });
  const before = await readTree(project);
  heading(`A scripted model works on a copy of ${relative(root, example)}`);
  const exitStatus = await runBrig(project);
  if (exitStatus !== 0) return exitStatus;
  const diff = diffTrees(before, await readTree(project));
  heading("What changed");
  process.stdout.write(diff);
  heading("In figures");
  process.stdout.write(figures(await readSession(project)));
  heading("The same with a real model");
  process.stdout.write(
    `cp -r ${example}/project /tmp/tidy-invoice && OPENAI_API_KEY=… node -- ${root}dist/cli/main.js run -C /tmp/tidy-invoice "${prompt}"\n`,
  );
  return diff === "" ? 1 : 0;
}

/** Runs `brig run` with this process's output, and resolves to its exit status. */
async function runBrig(project) {
  const argv = [
    "run",
    "--script",
    join(example, "demo.yaml"),
    "-s",
    "workspace-write",
    "-C",
    project,
    prompt,
  ];
  // In a process group of its own, so that ctrl-C reaches brig only once, through us, and brig can close the sandbox.
  const brig = spawn(process.execPath, ["--", join(root, "dist/cli/main.js"), ...argv], {
    stdio: ["ignore", "inherit", "inherit"],
    detached: true,
  });
  let isInterrupted = false;
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
    process.on(signal, () => {
      if (!isInterrupted) brig.kill(signal);
      isInterrupted = true;
    });
  }
  return await new Promise((resolve, reject) => {
    brig.once("error", reject);
    brig.once("exit", (code) => resolve(code ?? 1));
  });
}

/** Maps the path of each file below the folder to its text. */
async function readTree(folder) {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.path, entry.name));
  return new Map(
    await Promise.all(files.map(async (file) => [relative(folder, file), await readFile(file, "utf8")])),
  );
}

/** Finds the session file by the project's folder, in which no other session has worked. */
async function readSession(project) {
  const sessions = join(process.env.BRIG_HOME || join(homedir(), ".brig"), "sessions");
  const names = (await readdir(sessions, { recursive: true })).filter((name) => name.endsWith(".jsonl"));
  for (const name of names.sort().reverse()) {
    const file = join(sessions, name);
    const lines = (await readFile(file, "utf8")).trimEnd().split("\n");
    if (JSON.parse(lines[0]).payload.cwd === project)
      return { file, records: lines.map((line) => JSON.parse(line)) };
  }
  throw new Error(`there is no session file for ${project} in ${sessions}`);
}

function figures({ file, records }) {
  const payloads = (type) => records.filter((record) => record.type === type).map(({ payload }) => payload);
  const [sandbox] = payloads("brig.sandbox");
  const latencies = payloads("brig.call").map(({ duration_ms }) => duration_ms);
  const rows = [
    [
      "session start",
      `${sandbox.start_ms.toFixed(0)} ms, until the container ran and its policy was checked`,
    ],
    ["tool calls", `${latencies.length}`],
    ["median call", `${median(latencies).toFixed(1)} ms, including the work of the commands`],
    ["session file", file],
  ];
  return rows.map(([name, value]) => `${name.padEnd(15)}${value}\n`).join("");
}

function median(numbers) {
  const sorted = numbers.toSorted((a, b) => a - b);
  return (sorted[Math.floor(sorted.length / 2)] + sorted[Math.ceil(sorted.length / 2) - 1]) / 2;
}

function heading(text) {
  process.stdout.write(`\n== ${text}\n`);
}
