// Prepares a fresh checkout: packages, compiled code, a running container engine, images. Uses only Node itself, and takes less than a
// second if there is nothing to do. Exit status: 0 ready, 1 a step failed, 125 no engine, 130 interrupted.
import { compile } from "./setup/compile.js";
import { fetchDebianPackages } from "./setup/debian-packages.js";
import { openEngine } from "./setup/engine.js";
import { buildImages } from "./setup/images.js";
import { installPackages } from "./setup/packages.js";
import { Progress } from "./setup/progress.js";

const oldestNode = [20, 19];

const interruption = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, interrupt);

const work = { progress: new Progress(process.stderr), signal: interruption.signal };
try {
  requireNode(process.versions.node);
  const fetched = fetchDebianPackages(work);
  await installPackages(work);
  const { bundled } = await compile(work);
  bundled?.catch(() => undefined);
  try {
    await prepareEngine(fetched);
  } finally {
    if (bundled !== null) await work.progress.step("bundling", () => bundled);
  }
} catch (error) {
  work.progress.stop();
  if (!interruption.signal.aborted) report(error);
  process.exitCode = interruption.signal.aborted ? 130 : exitStatus(error);
}

async function prepareEngine(fetched) {
  await fetched;
  const engine = await openEngine(work);
  await buildImages(engine, work);
}

/** The first time everything is ended in order, the second time at once. */
function interrupt() {
  if (interruption.signal.aborted) process.exit(130);
  interruption.abort();
}

function requireNode(version) {
  const [major, minor] = version.split(".").map(Number);
  const isOldEnough = major > oldestNode[0] || (major === oldestNode[0] && minor >= oldestNode[1]);
  if (!isOldEnough) throw new Error(`brig needs Node ${oldestNode.join(".")} or newer, this is ${version}`);
}

function report(error) {
  process.stderr.write(`setup: ${error.message}\n`);
  if (error.hint) process.stderr.write(`hint: ${error.hint}\n`);
}

function exitStatus(error) {
  return ["engine.unreachable", "engine.too-old"].includes(error.code) ? 125 : 1;
}
