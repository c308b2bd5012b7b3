// Which tests a change concerns. It depends on the change alone, so two checks of the same commit run the same tests.
import { readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { ExecutedTests } from "../executed/executed-tests.js";
import { touchedTests } from "../executed/touched-tests.js";
import { root } from "../setup/run.js";
import { changedSince } from "./change.js";
import { PARTS } from "./parts.js";
import { Sources } from "./sources.js";
import { testsOf } from "./tests.js";

/** Where tests with containers and whole programs are. The unit tests always run. */
const FOLDERS = ["test/docker", "test/e2e", "test/isolation"];

const API_REPORT = "test/e2e/api-report.test.ts";

/** After a change of these, every test runs: each sandbox and each program is made of them. */
const OF_EVERYTHING = [
  "images/base/",
  "images/toolbox/",
  "package-lock.json",
  "sandbox-policies/",
  "scripts/bundle",
  "scripts/doors.js",
  "test/vitest.config.ts",
  "tsconfig.json",
];

/** No test with a container can tell that these have changed: the unit tests, the linter or other steps of the check do. */
const OF_NO_TEST = [
  ".ci/",
  "AGENTS.md",
  "CONTRIBUTING.md",
  "biome.json",
  "knip.json",
  "scripts/executed/",
  "scripts/gate",
  "scripts/mutate",
  "scripts/record",
  "scripts/setup",
  "scripts/test-all.mjs",
  "test/bench/",
  "test/executed.json.br",
  "test/guarantees.ts",
  "test/last-runs.json",
  "test/projects.ts",
  "test/unit",
];

/**
 * For the paths that have changed, or null if that is not known: by test file, why it runs, and the parts that the change concerns. `unused` are
 * changed files of which no test is known to use them. With `always`, the default, there are also the tests that run after every change.
 */
export async function selectTests({ paths, always = true }) {
  const all = (await Promise.all(FOLDERS.map(testsOf))).flat();
  const selection = new Selection(all);
  for (const test of all)
    if (always && promisesIn(test)) selection.add(test, "proves a promise of SECURITY.md");
  if (paths === null)
    return selection.everything("the commit that the change begins at is not in this clone");
  for (const path of paths) if (beginsWith(path, OF_EVERYTHING)) selection.everything(`${path} has changed`);
  const others = paths.filter((path) => !beginsWith(path, [...OF_EVERYTHING, ...OF_NO_TEST, "src/"]));
  for (const path of others) selectUsers(selection, path);
  await selectExecuting(
    selection,
    paths.filter((path) => path.startsWith("src/")),
  );
  selection.parts = PARTS.filter(
    ({ after = [], inCheck }) => inCheck !== null && paths.some((path) => beginsWith(path, after)),
  );
  return selection;
}

class Selection {
  all;
  /** By test file. */
  reasons = new Map();
  parts = [];
  unused = [];

  constructor(all) {
    this.all = all;
  }

  add(test, reason) {
    if (!this.reasons.has(test)) this.reasons.set(test, reason);
  }

  everything(reason) {
    for (const test of this.all) this.add(test, reason);
    return this;
  }
}

/** The tests that execute a line that has changed, and those of which it is not known what they execute. */
async function selectExecuting(selection, paths) {
  const executed = await ExecutedTests.read();
  const changed = executed.commit === null ? null : changedSince(executed.commit);
  for (const test of selection.all) {
    if (!(await executed.isKnown(test))) selection.add(test, "it is not known what it executes");
    else if (paths.length > 0 && !executed.tests[test].passed)
      selection.add(test, "it is known only in part what it executes");
  }
  if (paths.length === 0) return;
  // No test executes the lines of a type, so this one has to look at the types after each change.
  if (selection.all.includes(API_REPORT)) selection.add(API_REPORT, "compares the public API");
  if (changed === null) selection.everything("it is not known what the tests execute");
  else {
    const sources = new Sources(executed.commit, changed);
    // What a file was when this was noted is compared with what it is now, and nothing that has landed in between is forgotten.
    const before = new Set(paths.map((path) => sources.pathBefore(path)));
    const marked = [...before].filter((path) => executed.files[path] !== undefined);
    const files = Object.keys(executed.files);
    for (const test of touchedTests(executed, { sources, changed: marked, files }))
      selection.add(test, "executes a line that has changed");
    const isPage = (path) => /^src\/(?:batch\/report|lib|services\/serve)\/page\//.test(path);
    for (const path of paths.filter(isPage))
      selectUsers(selection, path, /\b(?:view|serve)-page|\bview-server|pictures/);
  }
}

/** The tests that load a file of the tests, or that name a file which is not loaded, or its folder. */
function selectUsers(selection, path, pattern = mentionOf(path)) {
  let isUsed = selection.all.includes(path);
  if (isUsed) selection.add(path, "has changed");
  for (const test of selection.all) {
    const loaded = loadedBy(test);
    if (!loaded.has(path) && ![...loaded.values()].some((text) => pattern.test(text))) continue;
    selection.add(test, `uses ${path}`);
    isUsed = true;
  }
  if (!isUsed) selection.unused.push(path);
}

/** The name of a file as a whole, or that of the folder it is in, where what lies in it is used together. */
function mentionOf(path) {
  const [, first, , folder] = path.split("/");
  const names = [basename(path)];
  if (/^(?:examples|integrations|deploy)\//.test(path) && first !== basename(path)) names.push(first);
  if (path.startsWith("test/fixtures/") && folder !== undefined) names.push(path.split("/")[2]);
  const escaped = names.map((name) => name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`["'\`/](?:${escaped.join("|")})["'\`/?]`);
}

const loaded = new Map();

/** A test file and all of the tests' own files that it loads, with their texts. */
function loadedBy(file) {
  const known = loaded.get(file);
  if (known !== undefined) return known;
  const found = new Map();
  const open = [file];
  while (open.length > 0) {
    const next = open.pop();
    if (found.has(next)) continue;
    const text = textOf(next);
    if (text === null) continue;
    found.set(next, text);
    for (const [, name] of text.matchAll(/(?:from|import) ?\(?\s*"(\.[^"]*)"/g)) {
      const path = join(dirname(next), name);
      if (path.startsWith("test/")) open.push(path.replace(/\.js$/, ".ts"));
    }
  }
  loaded.set(file, found);
  return found;
}

const texts = new Map();

function textOf(file) {
  if (!texts.has(file)) {
    try {
      texts.set(file, readFileSync(join(root, file), "utf8"));
    } catch (error) {
      if (error.code !== "ENOENT") throw error;
      texts.set(file, null);
    }
  }
  return texts.get(file);
}

/** Whether it proves a promise that SECURITY.md makes. */
function promisesIn(test) {
  return /\bpromised\(/.test(textOf(test) ?? "");
}

function beginsWith(path, beginnings) {
  return beginnings.some((beginning) => path.startsWith(beginning));
}
