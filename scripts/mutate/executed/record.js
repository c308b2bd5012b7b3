import { mkdir, readdir, readFile, rename, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { root } from "../../setup/run.js";
import { copyProject } from "../copy.js";
import { endInTime } from "../end-in-time.js";
import { contentKey, EXECUTED_FILE, readExecuted } from "./executed-tests.js";
import { lineAt, placesIn, withMarks } from "./marks.js";

const LIMIT_MS = 3 * 60 * 60 * 1000;
/** Where the tests leave which places they have run, one file for each of them. */
const FOUND = ".mutate-executed";
const CONFIG = "test/executed.config.ts";
const SETUP = "test/executed-setup.ts";

/** What is run of each project. `deep` tests run for minutes, and what they execute others execute as well. */
const RUNS = {
  unit: { argv: ["--project", "unit", "test/unit/"], isolate: false },
  // Each in a process of its own: what a file finds done already by another one it would not execute.
  docker: {
    argv: ["--project", "docker", "--project", "slow", "test/docker/", "test/isolation/"],
    isolate: true,
  },
};

/** Like the project's own, with a mark set up before each test file. A file that fails has shown what it executes until then. */
const configText = (isolate) => `import config from "./vitest.config.js";
const settings = config.test;
for (const { test } of settings.projects) Object.assign(test, { setupFiles: ["${SETUP}"], isolate: ${isolate} });
export default config;
`;

const setupText = (found) => `import { mkdirSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll } from "vitest";
const executed = new Set();
globalThis.brigExecuted = executed;
let begin = 0;
let loaded = [];
beforeAll(() => {
  begin = performance.now();
  loaded = [...executed];
});
afterAll(({}, { file }) => {
  mkdirSync("${found}", { recursive: true });
  const seconds = Math.round((performance.now() - begin) / 100) / 10;
  const content = JSON.stringify({ test: file.filepath, seconds, loaded, executed: [...executed] });
  writeFileSync("${found}/" + file.filepath.replaceAll("/", "+") + ".json", content);
});
`;

/** Runs all tests of a project once, and notes which places of these directories each test file executes. */
export async function recordExecuted(project, { places, signal }) {
  const copy = await copyProject();
  const marks = await markSources(copy.path, places);
  const write = setInterval(() => void note(copy.path, marks).catch(() => undefined), 30_000);
  try {
    const { argv, isolate } = RUNS[project];
    await writeFile(join(copy.path, CONFIG), configText(isolate));
    await writeFile(join(copy.path, SETUP), setupText(join(copy.path, FOUND)));
    const vitest = join(copy.path, "node_modules/vitest/vitest.mjs");
    await endInTime([process.execPath, vitest, "run", "--config", CONFIG, "--maxWorkers", "2", ...argv], {
      cwd: copy.path,
      timeoutMs: LIMIT_MS,
      signal,
      env: { ...process.env, BRIG_TEST_RUNS: "100" },
    });
  } finally {
    clearInterval(write);
    await note(copy.path, marks);
    await copy.remove();
  }
}

/** What each mark stands for. */
async function markSources(path, places) {
  const marks = [];
  for (const place of places)
    for (const name of (await readdir(join(root, place), { recursive: true })).sort()) {
      if (!name.endsWith(".ts")) continue;
      const file = `${place}/${name}`;
      const source = await readFile(join(root, file), "utf8");
      const first = marks.length;
      const content = contentKey(source);
      for (const { start } of placesIn(source)) marks.push({ file, content, line: lineAt(source, start) });
      await writeFile(
        join(path, file),
        withMarks(source, (index) => `globalThis.brigExecuted?.add(${first + index})`),
      );
    }
  return marks;
}

/** Adds what has been found until now to what is known, also when only some of the tests have run. */
async function note(path, marks) {
  const known = await readExecuted();
  const names = await readdir(join(path, FOUND)).catch(() => []);
  for (const name of names) {
    const found = JSON.parse(await readFile(join(path, FOUND, name), "utf8"));
    const executed = {};
    for (const [kind, ids] of [
      ["loaded", found.loaded],
      ["lines", found.executed],
    ])
      for (const id of ids) {
        const { file, content, line } = marks[id];
        executed[file] ??= { content, loaded: [], lines: [] };
        if (!executed[file][kind].includes(line)) executed[file][kind].push(line);
      }
    const test = relative(path, found.test);
    known[test] = {
      content: contentKey(await readFile(join(path, test), "utf8")),
      seconds: found.seconds,
      executed,
    };
  }
  const to = join(root, EXECUTED_FILE);
  await mkdir(dirname(to), { recursive: true });
  await writeFile(`${to}.new`, JSON.stringify(known));
  await rename(`${to}.new`, to);
}
