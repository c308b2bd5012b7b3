import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { root } from "../../setup/run.js";
import { lineAt, placesIn } from "./marks.js";

/** Where `--record` notes it. It is written anew in minutes, and says something about this machine and this state of the project only. */
export const EXECUTED_FILE = ".bench/executed.json";

/** For each test file its content, how long it took, and the texts of the lines that it executes. Empty if nothing has been noted. */
export async function readExecuted() {
  const text = await readFile(join(root, EXECUTED_FILE), "utf8").catch((error) => {
    if (error.code === "ENOENT") return "{}";
    throw error;
  });
  return JSON.parse(text);
}

/** Tells a test file from the same one with other tests in it. */
export function contentKey(text) {
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}

/** Says which test files execute the place of a fault. */
export class ExecutedTests {
  #noted;
  #contents = new Map();

  constructor(noted) {
    this.#noted = noted;
  }

  /**
   * Those of these tests that may execute it, in their order: all but the ones that are known not to. Tests share a process, in which a
   * source file is loaded once: what runs as it is loaded was noted for one of them only, and counts for all.
   */
  async mayExecute(tests, { mutant, source, path }) {
    const place = placeOf(mutant, source);
    if (place.line === null || this.#isRunByLoading(place)) return tests;
    const found = [];
    for (const test of tests)
      if (!(await this.#isKnown(test, path)) || this.#executes(test, place)) found.push(test);
    return found;
  }

  /** All tests with containers that are known to execute it, the short ones first. */
  async executing(mutant, source) {
    const place = placeOf(mutant, source);
    const seconds = (test) => this.#noted[test].seconds;
    return Object.keys(this.#noted)
      .filter((test) => !test.startsWith("test/unit/") && this.#executes(test, place))
      .sort((a, b) => seconds(a) - seconds(b) || (a < b ? -1 : 1));
  }

  #isRunByLoading({ file, line }) {
    return Object.values(this.#noted).some(({ executed }) => executed[file]?.loaded.includes(line));
  }

  /** A test counts if it executes anything of the file where the fault is outside of all functions, or the file has been changed since then. */
  #executes(test, { file, content, line }) {
    const executed = this.#noted[test].executed[file];
    if (executed === undefined) return false;
    return line === null || executed.content !== content || executed.lines.includes(line);
  }

  /** It is not for a test that was changed since then. */
  async #isKnown(test, path) {
    if (this.#noted[test] === undefined) return false;
    let content = this.#contents.get(test);
    if (content === undefined) {
      content = contentKey(await readFile(join(path, test), "utf8"));
      this.#contents.set(test, content);
    }
    return this.#noted[test].content === content;
  }
}

/** The line that is known to be executed with a fault: null outside of functions. */
export function placeOf({ file, start }, source) {
  const around = placesIn(source).filter((place) => place.start <= start && start < place.end);
  const inner = around.at(-1);
  return {
    file,
    content: contentKey(source),
    line: inner === undefined ? null : lineAt(source, inner.start),
  };
}
