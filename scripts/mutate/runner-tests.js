import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { root } from "../setup/run.js";
import { endInTime } from "./end-in-time.js";
import { applied } from "./mutant.js";

/** The tests and their sources. */
const BINARIES = { unit: "main", "unit-trees": "trees", "unit-copies": "copies", "unit-session": "session" };
const LIMIT_MS = 300_000;
/** Without sanitizers, with which compiling takes four times as long: a fault that only they notice counts as not noticed. */
const MAKE = "make -C /src/test OUT=/tmp WARNINGS='-std=gnu11 -w' SANITIZE='-g -O0'";

/** A container with a compiler and the runner's native tests, which are compiled anew for each fault. */
export async function openRunnerTests(signal) {
  // The tests know how to build the image. They are TypeScript, which only this loads.
  const { register } = await import("tsx/esm/api");
  register();
  const { runnerChecks } = await import("../../test/support/runner-builds.js");
  const { testEngine } = await import("../../test/support/engine.js");
  const image = await runnerChecks(await testEngine());
  const options = [
    "--rm",
    "--detach",
    "--init",
    "--network",
    "none",
    "--cap-add",
    "SYS_PTRACE",
    "--tmpfs",
    "/tmp:exec",
  ];
  const { stdout } = await promisify(execFile)("docker", ["run", ...options, image, "sleep", "86400"]);
  const id = stdout.trim();
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

  async function outcomeOf(mutant) {
    const source = await readFile(join(root, mutant.file), "utf8");
    const path = `/src/${basename(mutant.file)}`;
    await inside(`cat > ${path}`, applied(source, mutant));
    try {
      const tests = [...parts].filter(([, files]) => files.has(basename(mutant.file)));
      if (tests.length === 0) return "untested";
      for (const [name] of tests) {
        const built = await inside(`rm -f /tmp/${name}; ${MAKE} /tmp/${name} >/tmp/log 2>&1`);
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
