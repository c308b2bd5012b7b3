import { spawn, spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../setup/run.js";

const RESULTS = ".ci/results.mjs";
/** More failed files than this have a common cause, and running them once more would say nothing new. */
const MOST_AGAIN = 10;
const SHOWN_LINES = 60;

/** The steps of a check, one after the other. A failed one does not keep the next from running. */
export class Steps {
  #place;
  #env;
  #failed = 0;
  /** The JSON reports of vitest; those that are of this process's own runs can run again. */
  #reports = [];
  #again;
  #ends = [];

  constructor({ place, endsAt }) {
    this.#place = place;
    this.#again = join(place, "again.json");
    this.#env = { ...process.env, BRIG_TESTS_END_AT: String(endsAt) };
  }

  async run(command, env = {}) {
    const begin = Date.now();
    process.stdout.write(`== ${command.join(" ").slice(0, 300)}\n`);
    const { status, end } = await ran(command, { ...this.#env, ...env });
    const seconds = Math.round((Date.now() - begin) / 1000);
    process.stdout.write(
      `== ${status === 0 ? "done" : "failed"} in ${seconds} s: ${command.join(" ").slice(0, 100)}\n`,
    );
    if (status === 0) return;
    this.#failed += 1;
    // A step can fail although each of its tests passed: because of an error outside of tests, or of something left behind.
    this.#ends.push(`== the end of the failed step: ${command.join(" ").slice(0, 100)}\n${end}`);
  }

  async runTests(name, argv) {
    const report = this.#report(name, { isOwn: true });
    await this.run([
      "npx",
      "vitest",
      "run",
      "--config",
      "test/vitest.config.ts",
      ...reporters(report),
      ...argv,
    ]);
  }

  async runPart({ name, command, inCheck = command, isVitest = false }) {
    const report = this.#report(name, { isOwn: isVitest });
    await this.run([...inCheck, ...(isVitest ? reporters(report) : [])], { BRIG_TEST_REPORT: report });
  }

  /** Alone, to tell what is broken from what other tests disturb, which is named and counted in the end. Scripts do this themselves. */
  async runFailedAgain() {
    const own = this.#written.filter(({ isOwn }) => isOwn).map(({ path }) => path);
    const { stdout } = spawnSync("node", [RESULTS, "failed-files", ...own], { cwd: root, encoding: "utf8" });
    const files = stdout.split("\n").filter((file) => file !== "");
    if (files.length === 0 || files.length > MOST_AGAIN) return;
    process.stdout.write(`== once more, alone: ${files.join(" ")}\n`);
    const argv = ["--maxWorkers", "1", ...files];
    await ran(
      ["npx", "vitest", "run", "--config", "test/vitest.config.ts", ...reporters(this.#again), ...argv],
      this.#env,
    );
  }

  /** Prints the end of what failed and the last line, and returns the exit status. */
  async summarize() {
    for (const end of this.#ends) process.stdout.write(`${end}\n`);
    const again = existsSync(this.#again) ? this.#again : "";
    const runs = this.#written.map(({ path, isOwn }) => `${path}=${isOwn ? again : ""}`);
    const { status } = spawnSync("node", [RESULTS, "summary", String(this.#failed), ...runs], {
      cwd: root,
      stdio: "inherit",
    });
    return status ?? 1;
  }

  #report(name, { isOwn }) {
    const path = join(this.#place, `${name}.json`);
    this.#reports.push({ path, isOwn });
    return path;
  }

  /** Those that came to be: a run that could not begin has written none, and its step has failed. */
  get #written() {
    return this.#reports.filter(({ path }) => existsSync(path) && readFileSync(path, "utf8") !== "");
  }
}

function reporters(report) {
  const names = ["default", join(root, ".ci/still-running.mjs"), join(root, "test/reporter.mjs"), "json"];
  return [...names.map((name) => `--reporter=${name}`), `--outputFile.json=${report}`];
}

/** Passes on what a command prints, and keeps the end of it. */
function ran([program, ...argv], env) {
  return new Promise((resolve) => {
    const child = spawn(program, argv, { cwd: root, env, stdio: ["ignore", "pipe", "pipe"] });
    let end = "";
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (chunk) => {
        process.stdout.write(chunk);
        end = `${end}${chunk}`.slice(-20_000);
      });
    child.once("error", (error) => resolve({ status: 127, end: String(error) }));
    child.once("close", (status) => resolve({ status, end: end.split("\n").slice(-SHOWN_LINES).join("\n") }));
  });
}
