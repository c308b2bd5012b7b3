import { touchedBy } from "./touched.js";

/**
 * The tests that execute something that a change of the sources touches. `sources` has each file as it was when it was noted what tests execute, and as it
 * is now: `before(file)`, `after(file)`, null where there is none. `changed` are the files that differ, and `files` all that were there before.
 */
export function touchedTests(executed, { sources, changed, files }) {
  const touched = new Touched({ sources, files });
  for (const file of changed) {
    const before = sources.before(file);
    // Of a file that was not there, nothing runs unless something else was changed too.
    if (before === null) continue;
    const after = sources.after(file);
    const { places, names } = after === null ? everythingOf(before) : touchedBy(before, after);
    touched.add(file, places);
    touched.addNames(file, names);
  }
  const tests = new Set();
  for (const [file, places] of touched.places)
    for (const test of executed.ofPlaces(file, [...places])) tests.add(test);
  return tests;
}

function everythingOf(source) {
  return { places: source.places.keys(), names: source.statements.flatMap(({ names }) => names) };
}

/** What is touched, with all that uses a name of which the value has changed, in any file. */
class Touched {
  places = new Map();
  #sources;
  #files;
  /** By file, the names that have been followed. */
  #names = new Map();

  constructor({ sources, files }) {
    this.#sources = sources;
    this.#files = files;
  }

  add(file, places) {
    if (!this.places.has(file)) this.places.set(file, new Set());
    for (const place of places) this.places.get(file).add(place);
  }

  addNames(file, names) {
    const known = this.#names.get(file) ?? new Set();
    const found = [...names].filter((name) => !known.has(name));
    if (found.length === 0) return;
    this.#names.set(file, new Set([...known, ...found]));
    this.#followInside(file, new Set(found));
    for (const other of this.#importing(file)) this.#followInto(other, { file, names: new Set(found) });
  }

  #followInside(file, names) {
    const source = this.#sources.before(file);
    for (const offset of source.usesOf(names)) {
      const places = source.placesAt(offset);
      this.add(file, places);
      if (places.length > 0) continue;
      const around = source.statements.find(({ start, end }) => start <= offset && offset < end);
      if (around === undefined) continue;
      this.add(file, source.placesFrom(around));
      this.addNames(file, around.names);
    }
  }

  #followInto(other, { file, names }) {
    const source = this.#sources.before(other);
    for (const { file: from, name, local, exported, start } of source.imports) {
      if (from !== file.replace(/\.tsx?$/, "") || !(name === "*" || names.has(name))) continue;
      if (start !== undefined) this.add(other, source.placesAt(start));
      if (local !== null) this.addNames(other, [local]);
      if (exported === "*") this.addNames(other, names);
      else if (exported !== undefined) this.addNames(other, [exported]);
    }
  }

  #importing(file) {
    const name = file.slice(file.lastIndexOf("/")).replace(/\.tsx?$/, ".js");
    return this.#files.filter((other) => other !== file && this.#sources.mentions(other, name));
  }
}
