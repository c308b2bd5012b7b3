// A reporter for vitest: at the time BRIG_TESTS_END_AT (milliseconds since 1970) it prints which test files have not ended, with the test that
// each is in, and ends the run as failed. A run that is ended from outside, because it took too long, says nothing about what it was waiting for.
import { spawnSync } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";

export default class StillRunning {
  /** By the id of the file: what it is called, since when it runs, and its newest test. */
  #running = new Map();
  #end = new AbortController();

  onInit() {
    const endsAt = Number(process.env.BRIG_TESTS_END_AT);
    if (endsAt > 0) void this.#endRunAt(endsAt);
  }

  onTestModuleStart({ id, relativeModuleId, project }) {
    const name = `${project.name} ${relativeModuleId}`;
    this.#running.set(id, { name, since: Date.now(), test: "no test of it is known to have begun" });
  }

  onTestCaseReady({ module, fullName }) {
    const file = this.#running.get(module.id);
    if (file) file.test = fullName;
  }

  onTestModuleEnd({ id }) {
    this.#running.delete(id);
  }

  onTestRunEnd() {
    this.#end.abort();
  }

  async #endRunAt(time) {
    const options = { signal: this.#end.signal, ref: false };
    const isOver = await sleep(Math.max(0, time - Date.now()), true, options).catch(() => false);
    if (!isOver) return;
    const lines = [...this.#running.values()].map(
      ({ name, since, test }) => `  ${name}, for ${Math.round((Date.now() - since) / 1000)} s: ${test}`,
    );
    process.stderr.write(`no time is left for these tests; still running:\n${lines.join("\n")}\n`);
    // A worker in an endless loop would not notice that this process is gone.
    spawnSync("pkill", ["-KILL", "-P", String(process.pid)]);
    process.exit(1);
  }
}
