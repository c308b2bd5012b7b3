// What each test file executes, as the marks have shown: which places of which source file.
import { createHash } from "node:crypto";
import { readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { brotliCompressSync, brotliDecompressSync, constants } from "node:zlib";
import { root } from "../setup/run.js";
import { placesIn } from "./marks.js";

/** What the tests with containers and whole programs execute. It is part of the project, because it takes most of an hour to find out. */
export const EXECUTED_FILE = "test/executed.json.br";
/** What the unit tests execute, for measurements with `scripts/mutate.mjs` on this machine. */
export const UNIT_EXECUTED_FILE = ".bench/executed-unit.json.br";

/** Tells a file from one of the same name with another content. */
export function contentKey(text) {
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}

/**
 * By commit: where the sources were. By test file: its content, how many seconds it took, and whether all of it passed. By source file: its
 * content, and the tests that execute each of its places (`placesIn`), and the places that run as the file is loaded.
 */
export class ExecutedTests {
  commit;
  tests;
  files;
  /** By test file, its content in the project at a path; read once. */
  #contents = new Map();

  constructor({ commit = null, tests = {}, files = {} } = {}) {
    this.commit = commit;
    this.tests = tests;
    this.files = files;
  }

  /** Nothing is known if there is no such file. */
  static async read(file = EXECUTED_FILE) {
    const bytes = await readFile(join(root, file)).catch((error) => {
      if (error.code === "ENOENT") return null;
      throw error;
    });
    if (bytes === null) return new ExecutedTests();
    const { commit, tests, sets, files } = JSON.parse(brotliDecompressSync(bytes));
    const names = Object.keys(tests);
    const named = sets.map((set) => set.map((index) => names[index]));
    for (const one of Object.values(files)) one.places = one.places.map((set) => named[set]);
    return new ExecutedTests({ commit, tests, files });
  }

  /** Most places are executed by the same tests as many others, so each set of tests is written once. */
  async write(file = EXECUTED_FILE) {
    const names = Object.keys(this.tests).sort();
    const indexes = new Map(names.map((name, index) => [name, index]));
    const sets = new Map();
    const setOf = (tests) => {
      const key = JSON.stringify(tests.map((test) => indexes.get(test)).sort((a, b) => a - b));
      if (!sets.has(key)) sets.set(key, sets.size);
      return sets.get(key);
    };
    const files = {};
    for (const name of Object.keys(this.files).sort())
      files[name] = { ...this.files[name], places: this.files[name].places.map(setOf) };
    const tests = Object.fromEntries(names.map((name) => [name, this.tests[name]]));
    const text = JSON.stringify({
      commit: this.commit,
      tests,
      sets: [...sets.keys()].map(JSON.parse),
      files,
    });
    const params = { [constants.BROTLI_PARAM_QUALITY]: 10, [constants.BROTLI_PARAM_LGWIN]: 24 };
    const path = join(root, file);
    await writeFile(`${path}.new`, brotliCompressSync(text, { params }));
    await rename(`${path}.new`, path);
  }

  /** Those that execute anything of a source file. */
  ofFile(file) {
    return new Set(this.files[file]?.places.flat());
  }

  /** Those that execute one of the places of a source file, by their indexes. */
  ofPlaces(file, indexes) {
    return new Set(indexes.flatMap((index) => this.files[file]?.places[index] ?? []));
  }

  /**
   * Those of these tests that may execute the place of a fault, in their order: all but the ones that are known not to. Tests may share a
   * process, in which a source file is loaded once: what runs as it is loaded was noted for one of them only, and counts for all.
   */
  async mayExecute(tests, { mutant, source, path }) {
    const place = placeOf(mutant, source);
    if (place.index === null || this.#isRunByLoading(place)) return tests;
    const executing = this.#executing(place);
    const found = [];
    for (const test of tests) if (executing.has(test) || !(await this.isKnown(test, path))) found.push(test);
    return found;
  }

  /** All tests that are known to execute the place of a fault, the short ones first. */
  executing(mutant, source) {
    const seconds = (test) => this.tests[test].seconds;
    return [...this.#executing(placeOf(mutant, source))].sort(
      (a, b) => seconds(a) - seconds(b) || (a < b ? -1 : 1),
    );
  }

  /** What was noted of a test counts until it is changed. */
  async isKnown(test, path = root) {
    if (this.tests[test] === undefined) return false;
    let content = this.#contents.get(test);
    if (content === undefined) {
      content = contentKey(await readFile(join(path, test), "utf8"));
      this.#contents.set(test, content);
    }
    return this.tests[test].content === content;
  }

  #isRunByLoading({ file, content, index }) {
    const noted = this.files[file];
    return noted?.content === content && noted.loaded.includes(index);
  }

  /** A test counts if it executes anything of the file where the fault is outside of all functions, or the file has been changed since then. */
  #executing({ file, content, index }) {
    if (index === null || this.files[file]?.content !== content) return this.ofFile(file);
    return this.ofPlaces(file, [index]);
  }
}

/** The place that is known to be executed with a fault, by its index: null outside of functions. */
export function placeOf({ file, start }, source) {
  const places = placesIn(source, file);
  const index = places.findLastIndex((place) => place.start <= start && start < place.end);
  return { file, content: contentKey(source), index: index === -1 ? null : index };
}
