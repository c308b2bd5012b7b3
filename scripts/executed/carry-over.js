import { diffArrays } from "diff";
import { ExecutedTests } from "./executed-tests.js";
import { lineAt } from "./marks.js";

/**
 * What has just been noted of some tests, with what was known of the others. These execute nothing that has been changed since, so each place that they
 * execute is still there, though perhaps in another line. `all` are the tests that there are.
 */
export function carriedOver(known, noted, { sources, all }) {
  const kept = new Set(
    all.filter((test) => known.tests[test] !== undefined && noted.tests[test] === undefined),
  );
  const files = {};
  for (const [file, now] of Object.entries(noted.files)) {
    const places = now.places.map((tests) => [...tests]);
    const before = known.files[sources.pathBefore(file)];
    const loaded = new Set(now.loaded);
    if (before !== undefined)
      for (const [from, to] of samePlaces(before, now, file, sources)) {
        places[to].push(...before.places[from].filter((test) => kept.has(test)));
        if (before.loaded.includes(from)) loaded.add(to);
      }
    files[file] = { content: now.content, places, loaded: [...loaded].sort((a, b) => a - b) };
  }
  const tests = { ...noted.tests };
  for (const test of kept) tests[test] = known.tests[test];
  return new ExecutedTests({ commit: noted.commit, tests, files });
}

/** Pairs of indexes of the places that are in both versions of a file. */
function samePlaces(before, now, file, sources) {
  if (before.content === now.content) return now.places.map((_, index) => [index, index]);
  const texts = [sources.before(file), sources.after(file)].map(({ places, text }) =>
    places.map(({ start }) => lineAt(text, start)),
  );
  const pairs = [];
  let [from, to] = [0, 0];
  for (const { added, removed, count } of diffArrays(texts[0], texts[1])) {
    if (!added && !removed)
      for (let index = 0; index < count; index++) pairs.push([from + index, to + index]);
    if (!added) from += count;
    if (!removed) to += count;
  }
  return pairs;
}
