import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { root } from "../setup/run.js";
import { containerTests } from "./container-tests.js";
import { endInTime } from "./end-in-time.js";
import { applied } from "./mutant.js";
import { compileAll, openToolbox, replaceRunner } from "./runner-toolbox.js";

/** The tests and their sources. */
const BINARIES = {
  "unit-parts": "parts",
  unit: "main",
  "unit-trees": "trees",
  "unit-copies": "copies",
  "unit-session": "session",
};
const LIMIT_MS = 300_000;
/**
 * Only memory that nobody frees is looked for. With the other sanitizers compiling takes four times as long, so a fault that only they notice
 * counts as not noticed.
 */
const MAKE = "make -C /src/test OUT=/tmp WARNINGS='-std=gnu11 -w' SANITIZE='-g -O0 -fsanitize=leak'";

/** Only its compilers are used, so that it need not be built anew after each change of the runner. Null if there is none. */
async function newestImage() {
  const { stdout } = await promisify(execFile)("docker", ["images", "--quiet", "brig/test-runner-fuzz"]);
  return stdout.split("\n")[0] || null;
}

/**
 * A container with a compiler and the runner's native tests, which are compiled anew for each fault. With `sandboxRuns`, those of tests in
 * sandboxes, a fault that the native tests do not notice gets into a volume, which sandboxes then have instead of brig's own.
 */
export async function openRunnerTests({ sandboxRuns, signal }) {
  // The tests know how to build the images. They are TypeScript, which only this loads.
  const { register } = await import("tsx/esm/api");
  register();
  const { runnerChecks } = await import("../../test/support/runner-builds.js");
  const { testEngine } = await import("../../test/support/engine.js");
  const { ensureImages } = await import("../../src/images/ensure.js");
  const engine = await testEngine();
  const image = (await newestImage()) ?? (await runnerChecks(engine));
  const { toolbox: tag } = await ensureImages(engine, { names: ["toolbox"], mayInstall: true });
  const toolbox = sandboxRuns === null ? null : await openToolbox(tag);
  const options = ["--rm", "--detach", "--init", "--network", "none", "--cap-add", "SYS_PTRACE"];
  options.push("--tmpfs", "/tmp:exec");
  if (toolbox !== null) options.push("--mount", `type=volume,source=${toolbox.volume},target=/toolbox`);
  const { stdout } = await promisify(execFile)("docker", ["run", ...options, image, "sleep", "86400"]);
  const id = stdout.trim();
  await promisify(execFile)("docker", ["cp", `${join(root, "images/toolbox/runner")}/.`, `${id}:/src`]);
  const inside = (script, input) =>
    endInTime(["docker", "exec", "-i", id, "timeout", "-k", "1", "100", "sh", "-ec", script], {
      cwd: root,
      timeoutMs: LIMIT_MS,
      signal,
      input,
    });

  /** The files that each of the tests is made of. */
  const parts = new Map();
  for (const [name, main] of Object.entries(BINARIES)) {
    const list = `cd /src/test; clang -MM unit/${main}.c; ${MAKE} -n /tmp/${name}`;
    const { stdout: words } = await promisify(execFile)("docker", ["exec", id, "sh", "-ec", list]);
    parts.set(name, new Set(words.split(/[\s\\]+/).map((word) => basename(word))));
  }
  for (const name of parts.keys()) {
    const ended = await nativeTest(name);
    if (ended === "survived" || signal.aborted) continue;
    process.stderr.write(`  ${name} ends without a fault as ${ended} and is left out\n`);
    parts.delete(name);
  }
  if (toolbox !== null) await inside(compileAll);

  async function outcomeOf(mutant) {
    const source = await readFile(join(root, mutant.file), "utf8");
    const name = basename(mutant.file);
    await inside(`cat > /src/${name}`, applied(source, mutant));
    try {
      const outcome = await nativeOutcome(name);
      if (toolbox === null || !["survived", "untested"].includes(outcome)) return outcome;
      return await sandboxOutcome(name);
    } finally {
      if (!signal.aborted) {
        await inside(`cat > /src/${name}`, source);
        if (toolbox !== null) await inside(`cd /tmp/objects; clang -std=gnu11 -w -O1 -c /src/${name}`);
      }
    }
  }

  async function nativeOutcome(name) {
    const tests = [...parts].filter(([, files]) => files.has(name));
    if (tests.length === 0) return "untested";
    for (const [test] of tests) {
      const outcome = await nativeTest(test);
      if (outcome !== "survived") return outcome;
    }
    return "survived";
  }

  async function nativeTest(test) {
    const built = await inside(`rm -f /tmp/${test}; ${MAKE} /tmp/${test} >/tmp/log 2>&1`);
    if (built === "interrupted") return built;
    if (built !== "passed") return "invalid";
    const ended = await inside(`/tmp/${test} >/tmp/out 2>&1 && ! grep -q ^failed /tmp/out`);
    return { passed: "survived", failed: "killed" }[ended] ?? ended;
  }

  async function sandboxOutcome(name) {
    const built = await inside(replaceRunner(name));
    if (built !== "passed") return built === "interrupted" ? built : "invalid";
    const env = { BRIG_TEST_TOOLBOX: `volume:${toolbox.volume}` };
    for (const tests of containerTests(`images/${name}`)) {
      const outcome = await sandboxRuns.outcomeWith(tests, "docker", env);
      if (outcome !== "survived") return outcome;
    }
    return "survived";
  }

  return {
    outcomeOf,
    async close() {
      await promisify(execFile)("docker", ["rm", "--force", id]);
      await toolbox?.remove();
    },
  };
}
