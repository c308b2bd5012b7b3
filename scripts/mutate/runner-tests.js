import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { promisify } from "node:util";
import { root } from "../setup/run.js";
import { containerTests } from "./container-tests.js";
import { endInTime } from "./end-in-time.js";
import { applied } from "./mutant.js";
import { openNativeTests } from "./native-tests.js";
import { buildFaulty, buildSound, installFaulty, installSound, openToolbox } from "./runner-toolbox.js";

const execute = promisify(execFile);
/** For what is done with one fault, which may make a loop endless; and for compiling everything once, on a machine that has other work. */
const LIMIT_S = 100;
const LIMIT_OF_ALL_S = 1_200;

/** Only its compilers are used, so that it need not be built anew after each change of the runner. Null if there is none. */
async function newestImage() {
  const { stdout } = await execute("docker", ["images", "--quiet", "brig/test-runner-fuzz"]);
  return stdout.split("\n")[0] || null;
}

/**
 * Tries faults of the runner: first the native tests, in a container with a compiler. With `sandboxRuns`, those of tests in sandboxes, a fault that
 * the native tests do not notice gets into a volume, which sandboxes then have instead of brig's own.
 */
export async function openRunnerTests({ sandboxRuns, signal }) {
  // The tests know how to build the images. They are TypeScript, which only this loads.
  const { register } = await import("tsx/esm/api");
  register();
  const { runnerChecks } = await import("../../test/support/runner-builds.js");
  const { testEngine } = await import("../../test/support/engine.js");
  const { ensureImages } = await import("../../src/sandbox/images/ensure.js");
  const engine = await testEngine();
  const image = (await newestImage()) ?? (await runnerChecks(engine));
  const { toolbox: tag } = await ensureImages(engine, { names: ["toolbox"] });
  const toolbox = sandboxRuns === null ? null : await openToolbox(tag);
  const options = ["--rm", "--detach", "--init", "--network", "none", "--tmpfs", "/tmp:exec"];
  options.push("--cap-add", "SYS_PTRACE", "--cap-add", "SYS_ADMIN", "--security-opt", "apparmor=unconfined");
  if (toolbox !== null) options.push("--mount", `type=volume,source=${toolbox.volume},target=/toolbox`);
  const { stdout } = await execute("docker", ["run", ...options, image, "sleep", "86400"]);
  const id = stdout.trim();
  await execute("docker", ["exec", id, "sh", "-ec", "rm -rf /src/*"]);
  for (const folder of ["common", "runner", "runner-files"])
    await execute("docker", ["cp", join(root, "images/toolbox", folder), `${id}:/src`]);
  const inside = (script, { input, seconds = LIMIT_S } = {}) =>
    endInTime(["docker", "exec", "-i", id, "timeout", "-k", "1", `${seconds}`, "sh", "-ec", script], {
      cwd: root,
      timeoutMs: 2 * seconds * 1000,
      signal,
      input,
    });
  const insidePatiently = (script) => inside(script, { seconds: LIMIT_OF_ALL_S });
  const read = async (script) => (await execute("docker", ["exec", id, "sh", "-ec", script])).stdout;

  const native = await openNativeTests({ inside, insidePatiently, read });
  if (toolbox !== null) await insidePatiently(buildSound);

  async function outcomeOf(mutant) {
    const source = await readFile(join(root, mutant.file), "utf8");
    const name = relative("images/toolbox", mutant.file);
    await inside(`cat > /src/${name}`, { input: applied(source, mutant) });
    try {
      const outcome = await native.outcomeOf(name);
      if (toolbox === null || !["survived", "untested"].includes(outcome)) return outcome;
      return await sandboxOutcome(name);
    } finally {
      if (!signal.aborted) await inside(`cat > /src/${name}`, { input: source });
    }
  }

  /** The runner without a fault is compiled in the same way, so that only the fault makes a difference. */
  async function sandboxOutcome(name) {
    const built = await inside(buildFaulty(name));
    if (built !== "passed") return built === "interrupted" ? built : "invalid";
    const fault = {
      put: () => inside(installFaulty),
      remove: () => inside(installSound),
      env: { BRIG_TEST_TOOLBOX: `volume:${toolbox.volume}` },
    };
    for (const tests of containerTests(`images/${name}`)) {
      const outcome = await sandboxRuns.outcomeWith(tests, "docker", fault);
      if (!["survived", "untested"].includes(outcome)) return outcome;
    }
    return "survived";
  }

  return {
    outcomeOf,
    async close() {
      await execute("docker", ["rm", "--force", id]);
      await toolbox?.remove();
    },
  };
}
