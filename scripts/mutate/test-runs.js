import { readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { endInTime } from "./end-in-time.js";
import { applied } from "./mutant.js";

const LIMIT_MS = { unit: 240_000, docker: 600_000 };
const TESTS = { unit: "test/unit", docker: "test/docker" };

/** Runs the tests nearest to a file, in a copy of the project. */
export class TestRuns {
  #path;
  #testCount;
  #signal;
  #imports = new Map();

  constructor(path, { testCount, signal }) {
    this.#path = path;
    this.#testCount = testCount;
    this.#signal = signal;
  }

  /** "killed", "timed-out", "survived", "untested" where no test loads the file, or "interrupted". */
  async outcomeOf(mutant, project) {
    const isRunner = mutant.file.startsWith("images/");
    const tests = isRunner ? RUNNER_TESTS : await this.#nearest(mutant.file, TESTS[project]);
    if (tests.length === 0) return "untested";
    const file = join(this.#path, mutant.file);
    const source = await readFile(file, "utf8");
    await writeFile(file, applied(source, mutant));
    try {
      if (
        isRunner &&
        (await this.#run([process.execPath, "dist/cli/main.js", "image", "build"], project)) !== "passed"
      )
        return "invalid";
      const names = project === "docker" ? ["docker", "slow"] : [project];
      const projects = names.flatMap((name) => ["--project", name]);
      const vitest = [process.execPath, join(this.#path, "node_modules/vitest/vitest.mjs"), "run"];
      const outcome = await this.#run(
        [...vitest, "--config", "test/vitest.config.ts", ...projects, "--bail", "1", "--no-color", ...tests],
        project,
      );
      return { passed: "survived", failed: "killed" }[outcome] ?? outcome;
    } finally {
      await writeFile(file, source);
    }
  }

  async #run(argv, project) {
    // Fixed numbers, so that a random test is no reason for a fault to be noticed in one run and not in the other.
    const env = { ...process.env, BRIG_TEST_RUNS: "100", BRIG_TEST_SEED: "1" };
    return await endInTime(argv, {
      cwd: this.#path,
      timeoutMs: LIMIT_MS[project],
      signal: this.#signal,
      env,
    });
  }

  /** By how many imports are between the test and the file. Of those as near as others, the ones in the folder of the same name. */
  async #nearest(file, folder) {
    const entries = await readdir(join(this.#path, folder), { recursive: true });
    const tests = entries.filter((name) => name.endsWith(".test.ts")).map((name) => `${folder}/${name}`);
    const found = [];
    for (const test of tests) {
      const distance = await this.#distance(test, file);
      if (distance !== null) found.push({ test, distance, apart: apart(test, file) });
    }
    found.sort((a, b) => a.distance - b.distance || a.apart - b.apart || (a.test < b.test ? -1 : 1));
    return found.slice(0, this.#testCount).map(({ test }) => test);
  }

  async #distance(from, to) {
    const seen = new Set([from]);
    let front = [from];
    for (let distance = 0; front.length > 0; distance++) {
      if (front.includes(to)) return distance;
      const next = [];
      for (const file of front)
        for (const one of await this.#importsOf(file))
          if (!seen.has(one)) {
            seen.add(one);
            next.push(one);
          }
      front = next;
    }
    return null;
  }

  async #importsOf(file) {
    const known = this.#imports.get(file);
    if (known !== undefined) return known;
    const source = await readFile(join(this.#path, file), "utf8").catch(() => "");
    const names = [...source.matchAll(/^(?!import type)[^\n]*?(?:from|import) ?\(?"(\.[^"]*)\.js"/gm)];
    const imports = names.map(([, name]) =>
      relative(this.#path, join(this.#path, dirname(file), `${name}.ts`)),
    );
    this.#imports.set(file, imports);
    return imports;
  }
}

/** What a runner with a fault has to get through: its calls, files, terminals, kills and broken streams. */
const RUNNER_TESTS = ["results", "files", "stdin", "pty", "kill", "reconnect", "runner-abuse"].map(
  (name) => `test/docker/sandbox/${name}.test.ts`,
);

function apart(test, file) {
  const mirrored = test.replace(/^test\/\w+\//, "src/").replace(/(?:\.property)?\.test\.ts$/, ".ts");
  return mirrored === file ? -1 : relative(dirname(mirrored), file).split("/").length;
}
