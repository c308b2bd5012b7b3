// Finds out which places of the sources each test file executes: marks them in copies of the project, and runs the tests there.
import { execFile } from "node:child_process";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { copyProject } from "../mutate/copy.js";
import { endInTime } from "../mutate/end-in-time.js";
import { root } from "../setup/run.js";
import { contentKey, ExecutedTests } from "./executed-tests.js";
import { placesIn, withMarks } from "./marks.js";

const LIMIT_MS = 3 * 60 * 60 * 1000;
/** In each copy: a file for each test file, with a byte for each mark, and the name of the one that is written now. */
const FOUND = ".executed";
const CONFIG = "test/executed.config.ts";
const SETUP = "test/executed-setup.ts";
const MARK = "src/executed-mark.ts";
/** What a mark leaves: that it ran while the sources were being loaded, or later. */
const LOADED = 2;
/** A page for a browser has no files to write to. */
const NOT_MARKED = /^src\/batch\/report\/page\/|\.d\.ts$/;

/**
 * Like the project's own, with a place for marks set up before each test file. Tests with containers have a process for each file: what a file
 * finds done already by another one it would not execute.
 */
const configText = (isolate) => `import config from "./vitest.config.js";
const settings = config.test;
for (const { test } of settings.projects)
  Object.assign(test, { setupFiles: ["${SETUP}"], isolate: ${isolate}, maxWorkers: 1 });
export default config;
`;

const setupText = ({ path, count }) => `import { chmodSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, expect } from "vitest";
const file = expect.getState().testPath;
const to = "${path}/${FOUND}/" + file.slice("${path}/".length).replaceAll("/", "+");
writeFileSync(to, new Uint8Array(${count}));
chmodSync(to, 0o666);
writeFileSync("${path}/${FOUND}/current", to);
globalThis.brigMarksLoaded = ${LOADED};
globalThis.brigMarksBegin?.();
const begin = performance.now();
beforeAll(() => { globalThis.brigMarksLoaded = 0; });
afterAll(() => { writeFileSync(to + ".seconds", String(Math.round((performance.now() - begin) / 100) / 10)); });
`;

/** Every process writes each mark as it passes it, because some of them are killed. A process that may not, or is somewhere else, goes on without. */
const markText = ({ path, count }) => `// @ts-nocheck
const fs = globalThis.process?.getBuiltinModule?.("node:fs");
const seen = new Uint8Array(${count});
const byte = new Uint8Array(1);
let to;
function begin() {
  seen.fill(0);
  if (to !== undefined) fs.closeSync(to);
  to = undefined;
  try { to = fs.openSync(fs.readFileSync("${path}/${FOUND}/current", "utf8"), "r+"); } catch {}
}
begin();
globalThis.brigMarksBegin = begin;
export function brigMark(index) {
  const now = 1 | (globalThis.brigMarksLoaded ?? 0);
  if ((seen[index] & now) === now) return;
  seen[index] |= now;
  byte[0] = seen[index];
  if (to !== undefined) try { fs.writeSync(to, byte, 0, 1, index); } catch {}
}
`;

/**
 * Runs these test files, and returns what they execute. The sources are those of the commit that is checked out.
 * `sides` is how many test files run at once, each in a copy of its own; `seconds` says how long a file takes, as far as it is known.
 */
export async function recordExecuted({
  projects,
  tests,
  isolate = true,
  sides = 3,
  seconds = {},
  env = {},
  signal,
}) {
  const commit = await checkedOutCommit();
  const sources = await readSources();
  const shares = shared(tests, { sides, seconds });
  const noted = await Promise.all(
    shares.map((share) => recordShare({ share, projects, sources, isolate, env, signal })),
  );
  return collected({ commit, sources, noted: noted.flat() });
}

/** The longest first, each to whoever has the least until then. */
function shared(tests, { sides, seconds }) {
  const shares = Array.from({ length: sides }, () => ({ seconds: 0, tests: [] }));
  const cost = (test) => seconds[test] ?? 30;
  for (const test of [...tests].sort((a, b) => cost(b) - cost(a))) {
    const least = shares.reduce((a, b) => (b.seconds < a.seconds ? b : a));
    least.seconds += cost(test);
    least.tests.push(test);
  }
  return shares.map(({ tests }) => tests).filter((share) => share.length > 0);
}

async function recordShare({ share, projects, sources, isolate, env, signal }) {
  const copy = await copyProject();
  try {
    await markCopy(copy.path, { sources, isolate });
    const script = (name, ...argv) =>
      endInTime([process.execPath, join(copy.path, name), ...argv], {
        cwd: copy.path,
        timeoutMs: LIMIT_MS,
        signal,
        env: { ...process.env, BRIG_TEST_RUNS: "100", ...env },
      });
    if ((await script("scripts/setup.mjs")) !== "passed")
      throw new Error("the marked sources cannot be compiled");
    const results = join(copy.path, ".results.json");
    const reporters = ["--reporter", "json", "--outputFile", results];
    const options = ["--config", CONFIG, ...reporters, ...projects.flatMap((name) => ["--project", name])];
    await script("node_modules/vitest/vitest.mjs", "run", ...options, ...share);
    const report = JSON.parse(await readFile(results, "utf8").catch(() => '{"testResults":[]}'));
    return await notedIn(copy.path, { share, report });
  } finally {
    await copy.remove();
  }
}

async function markCopy(path, { sources, isolate }) {
  const count = sources.reduce((sum, { places }) => sum + places.length, 0);
  await mkdir(join(path, FOUND), { mode: 0o777 });
  await writeFile(join(path, CONFIG), configText(isolate));
  await writeFile(join(path, SETUP), setupText({ path, count }));
  await writeFile(join(path, MARK), markText({ path, count }));
  for (const { file, text, first } of sources) {
    const marked = withMarks(text, (index) => `brigMark(${first + index})`, file);
    const up = "../".repeat(file.split("/").length - 2) || "./";
    const [hashbang] = /^(?:#!.*\n)?/.exec(marked);
    const begin = `${hashbang}// @ts-nocheck\nimport { brigMark } from "${up}executed-mark.js";\n`;
    await writeFile(join(path, file), begin + marked.slice(hashbang.length));
  }
}

/** Every source file with its places, and the number of the first of them among all marks. */
async function readSources() {
  const names = (await readdir(join(root, "src"), { recursive: true })).map((name) => `src/${name}`).sort();
  const sources = [];
  let first = 0;
  for (const file of names) {
    if (!/\.tsx?$/.test(file) || NOT_MARKED.test(file)) continue;
    const text = await readFile(join(root, file), "utf8");
    const places = placesIn(text, file);
    if (places.length > 0) sources.push({ file, text, places, first });
    first += places.length;
  }
  return sources;
}

async function notedIn(path, { share, report }) {
  return await Promise.all(
    share.map(async (test) => {
      const found = join(path, FOUND, test.replaceAll("/", "+"));
      const marks = await readFile(found).catch(() => Buffer.alloc(0));
      const seconds = Number(await readFile(`${found}.seconds`, "utf8").catch(() => "0"));
      const results = report.testResults.filter(({ name }) => name === join(path, test));
      const passed = results.length > 0 && results.every(({ status }) => status === "passed");
      return { test, marks, seconds, passed, content: contentKey(await readFile(join(root, test), "utf8")) };
    }),
  );
}

function collected({ commit, sources, noted }) {
  const tests = {};
  for (const { test, seconds, passed, content } of noted) tests[test] = { content, seconds, passed };
  const files = {};
  for (const { file, text, places, first } of sources) {
    const executing = places.map((_, index) =>
      noted.filter(({ marks }) => marks[first + index] > 0).map(({ test }) => test),
    );
    const isLoading = (_, index) => noted.some(({ marks }) => (marks[first + index] & LOADED) > 0);
    const loaded = places.map((_, index) => index).filter((index) => isLoading(null, index));
    files[file] = { content: contentKey(text), places: executing, loaded };
  }
  return new ExecutedTests({ commit, tests, files });
}

/** What is noted is noted of a commit, because later changes are compared with its sources. */
async function checkedOutCommit() {
  const git = async (...argv) => (await promisify(execFile)("git", argv, { cwd: root })).stdout.trim();
  const changed = await git("status", "--porcelain", "--", "src", "images", "sandbox-policies");
  if (changed !== "")
    throw new Error(`commit these first, since what tests execute is noted for a commit:\n${changed}`);
  return await git("rev-parse", "HEAD");
}
