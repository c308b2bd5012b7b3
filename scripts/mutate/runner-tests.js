import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { root } from "../setup/run.js";
import { endInTime } from "./end-in-time.js";
import { applied } from "./mutant.js";

const BINARIES = ["unit", "unit-trees", "unit-copies", "unit-session"];
const LIMIT_MS = 300_000;

/** A container with a compiler and the runner's native tests, which are compiled anew for each fault. */
export async function openRunnerTests(signal) {
  // The tests know how to build the image. They are TypeScript, which only this loads.
  const { register } = await import("tsx/esm/api");
  register();
  const { runnerChecks } = await import("../../test/support/runner-builds.ts");
  const { testEngine } = await import("../../test/support/engine.ts");
  const image = await runnerChecks(await testEngine());
  const options = ["--rm", "--detach", "--init", "--network", "none", "--cap-add", "SYS_PTRACE", "--tmpfs", "/tmp:exec"];
  const { stdout } = await promisify(execFile)("docker", ["run", ...options, image, "sleep", "86400"]);
  const id = stdout.trim();
  const inside = (script, input) =>
    endInTime(["docker", "exec", "-i", id, "timeout", "-k", "1", "100", "sh", "-ec", script], {
      cwd: root,
      timeoutMs: LIMIT_MS,
      signal,
      input,
    });

  async function outcomeOf(mutant) {
    const source = await readFile(join(root, mutant.file), "utf8");
    const path = `/src/${basename(mutant.file)}`;
    await inside(`cat > ${path}`, applied(source, mutant));
    try {
      for (const name of BINARIES) {
        const built = await inside(
          `rm -f /tmp/${name}; make -C /src/test OUT=/tmp WARNINGS='-std=gnu11 -w' /tmp/${name} >/tmp/log 2>&1`,
        );
        if (built === "interrupted") return built;
        if (built !== "passed") return "invalid";
        const ended = await inside(`/tmp/${name} >/tmp/out 2>&1 && ! grep -q failed /tmp/out`);
        if (ended !== "passed") return ended === "failed" ? "killed" : ended;
      }
      return "survived";
    } finally {
      if (!signal.aborted) await inside(`cat > ${path}`, source);
    }
  }

  return {
    outcomeOf,
    close: async () => void (await promisify(execFile)("docker", ["rm", "--force", id])),
  };
}
