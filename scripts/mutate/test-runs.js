import { readFile, rm, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { containerTests } from "./container-tests.js";
import { endInTime } from "./end-in-time.js";
import { applied } from "./mutant.js";
import { NearestTests } from "./nearest-tests.js";

const COMPILER_LIMIT_MS = 300_000;
const LIMIT_MS = { unit: 120_000, docker: 600_000 };
/** With containers, of all of these: where a test file is says which one. */
const PROJECTS = { unit: ["unit"], docker: ["docker", "slow", "deep"] };
/** How many tests run before the others. */
const FIRST = 3;
/** How often all tests are run for a fault, if each time one of them fails that then passes. */
const TRIES = 3;
/** Where vitest writes which files failed. */
const RESULTS = ".mutate-results.json";

/** Runs tests in a copy of the project. */
export class TestRuns {
  #path;
  #testCount;
  #signal;
  #runProgram;
  #nearest;
  #noted;
  /** Of each test file that has failed with a fault: does it pass without one? */
  #isSound = new Map();

  /**
   * `noted` is what is known about the lines that tests execute, of unit tests and of those with containers. `run` runs a program as
   * `endInTime` does.
   */
  constructor(path, { testCount, noted, signal, run = endInTime }) {
    this.#path = path;
    this.#testCount = testCount;
    this.#signal = signal;
    this.#runProgram = run;
    this.#nearest = new NearestTests(path);
    this.#noted = noted;
  }

  /**
   * "killed", "timed-out", "survived", "untested" where there is no test for the file, or "interrupted". `project` is "unit", or "docker" for tests
   * with containers.
   */
  async outcomeOf(mutant, project) {
    const file = join(this.#path, mutant.file);
    const source = await readFile(file, "utf8");
    const lists =
      project === "docker"
        ? await this.#containerTests(mutant, source)
        : await this.#nearestTests(mutant, source);
    const put = (text) => writeFile(file, text);
    const fault = { put: () => put(applied(source, mutant)), remove: () => put(source) };
    let isTested = false;
    for (const tests of lists) {
      const outcome = await this.#outcome(tests, project, fault);
      if (!["survived", "untested"].includes(outcome)) return outcome;
      isTested ||= outcome === "survived";
    }
    return isTested ? "survived" : "untested";
  }

  /** Whether the compiler refuses it: then there can be no such fault in what is published. */
  async isRefusedByCompiler(mutant) {
    const file = join(this.#path, mutant.file);
    const source = await readFile(file, "utf8");
    await writeFile(file, applied(source, mutant));
    try {
      const tsc = join(this.#path, "node_modules/typescript/bin/tsc");
      const outcome = await endInTime([process.execPath, tsc, "-p", "tsconfig.json", "--noEmit"], {
        cwd: this.#path,
        timeoutMs: COMPILER_LIMIT_MS,
        signal: this.#signal,
      });
      return outcome === "failed";
    } finally {
      await writeFile(file, source);
    }
  }

  /** Most faults are noticed by the nearest, and loading the others takes longer than running these. */
  async #nearestTests(mutant, source) {
    const nearest = await this.#nearest.of(mutant.file, "test/unit");
    const some = await this.#noted.unit.mayExecute(nearest, { mutant, source, path: this.#path });
    return inTwo(some.slice(0, this.#testCount));
  }

  /** Those about the part first, then the short ones of all others that execute the line. */
  async #containerTests(mutant, source) {
    const listed = containerTests(mutant.file);
    const noted = this.#noted.docker;
    const executing = noted.executing(mutant, source).filter((test) => !test.startsWith("test/e2e/"));
    if (executing.length === 0) return listed;
    const about = await noted.mayExecute(listed[0] ?? [], { mutant, source, path: this.#path });
    const short = executing.filter((test) => about.includes(test));
    const tests = [...short, ...about, ...executing];
    return inTwo([...new Set(tests)].slice(0, this.#testCount));
  }

  /** With a fault that is put somewhere else, and that sandboxes get by a variable of the environment. */
  async outcomeWith(tests, project, fault) {
    return await this.#outcome(tests, project, fault);
  }

  async #outcome(tests, project, { put, remove, env = {} }) {
    // A test that fails without a fault says nothing about this one. Then the others are asked.
    for (let failedOnce = 0; ; ) {
      const sound = tests.filter((test) => this.#isSound.get(test) !== false);
      if (sound.length === 0) return "untested";
      const run = await this.#runWithFault(sound, project, { put, remove, env });
      if (run.outcome === "passed") return "survived";
      if (run.outcome === "interrupted") return run.outcome;
      // Where no file can be blamed, because they ended too late or never began, it is all of them or none.
      const suspects = run.failed.length > 0 ? run.failed.map((test) => [test]) : [sound];
      const noticing = [];
      for (const suspect of suspects)
        if (await this.#passWithoutFault(suspect, project, env)) noticing.push(...suspect);
      if (this.#signal.aborted) return "interrupted";
      if (noticing.length > 0) {
        // A machine that is too busy can also be why one failed, but hardly twice.
        const again = await this.#runWithFault(noticing, project, { put, remove, env });
        if (again.outcome !== "passed") return again.outcome === "failed" ? "killed" : again.outcome;
        process.stderr.write(`  ${noticing.join(", ")} failed only once with the fault\n`);
      } else if (run.failed.length > 0) continue;
      if (++failedOnce === TRIES) return "survived";
    }
  }

  async #runWithFault(tests, project, { put, remove, env }) {
    await put?.();
    try {
      return await this.#run(tests, project, env);
    } finally {
      await remove?.();
    }
  }

  async #passWithoutFault(tests, project, env) {
    const known = tests.length === 1 ? this.#isSound.get(tests[0]) : undefined;
    if (known !== undefined) return known;
    // Once more, since the machine may have been too busy.
    let { outcome } = await this.#run(tests, project, env);
    if (outcome !== "passed") ({ outcome } = await this.#run(tests, project, env));
    // It is not known when this was interrupted.
    if (this.#signal.aborted) return true;
    if (tests.length === 1) this.#isSound.set(tests[0], outcome === "passed");
    if (outcome !== "passed")
      process.stderr.write(`  ${tests.join(", ")}: ${outcome} without a fault and not counted\n`);
    return outcome === "passed";
  }

  /** `failed` are the test files with failures. It is empty where the tests could not begin or left something behind. */
  async #run(tests, project, env) {
    const results = join(this.#path, RESULTS);
    await rm(results, { force: true });
    const argv = [process.execPath, join(this.#path, "node_modules/vitest/vitest.mjs"), "run"];
    argv.push(
      "--config",
      "test/vitest.config.ts",
      ...PROJECTS[project].flatMap((name) => ["--project", name]),
    );
    argv.push("--bail", "1", "--no-color", "--reporter", "json", "--outputFile", results, ...tests);
    const outcome = await this.#runProgram(argv, {
      cwd: this.#path,
      timeoutMs: LIMIT_MS[project],
      signal: this.#signal,
      // Fixed numbers, so that a random test is no reason for a fault to be noticed in one run and not in the other.
      env: { ...process.env, BRIG_TEST_RUNS: "100", BRIG_TEST_SEED: "1", ...env },
    });
    return { outcome, failed: outcome === "failed" ? await this.#failedIn(results) : [] };
  }

  async #failedIn(results) {
    const text = await readFile(results, "utf8").catch(() => '{"testResults":[]}');
    return JSON.parse(text)
      .testResults.filter(({ status }) => status === "failed")
      .map(({ name }) => relative(this.#path, name));
  }
}

function inTwo(tests) {
  return [tests.slice(0, FIRST), tests.slice(FIRST)].filter((list) => list.length > 0);
}
