// Keeps what the tests did on each container engine, and writes the tables of the documentation from it.
//   node scripts/engine-results.mjs record NAME --run-by SCRIPT --tests WORDS REPORT [AGAIN]
//       writes test/engines/NAME.json from vitest's JSON report, from that of the second run of files that failed, and from what the engine at DOCKER_HOST says about itself
//   node scripts/engine-results.mjs tables
//       writes the tables of docs/engines.md from test/engines
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { askEngine } from "./engine-results/ask-engine.js";
import { countTests } from "./engine-results/count-tests.js";
import { documents, resultsDirectory, root } from "./engine-results/places.js";
import { readResults } from "./engine-results/results.js";
import { replaceTable } from "./engine-results/tables.js";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { "run-by": { type: "string" }, tests: { type: "string" } },
});
const [command, ...rest] = positionals;
if (command === "record") await record(rest);
else if (command !== "tables") throw new Error(`${command} is neither record nor tables`);
await writeTables();

async function record([name, report, again]) {
  if (name === undefined || report === undefined) throw new Error("record needs a name and a report");
  const { "run-by": runBy, tests } = values;
  if (!runBy || !tests) throw new Error("record needs --run-by and --tests");
  const result = {
    date: new Date().toISOString().slice(0, 10),
    ...(await askEngine(process.env)),
    runBy,
    tests,
    ...countTests(await readReport(report), again === undefined ? null : await readReport(again)),
  };
  await mkdir(resultsDirectory, { recursive: true });
  await writeFile(join(resultsDirectory, `${name}.json`), `${JSON.stringify(result, null, 2)}\n`);
}

/** Null for an empty file: then there was no such run. */
async function readReport(file) {
  const text = await readFile(file, "utf8");
  return text === "" ? null : JSON.parse(text);
}

async function writeTables() {
  const results = await readResults(resultsDirectory);
  for (const { file, table } of documents) {
    const path = join(root, file);
    await writeFile(path, replaceTable(await readFile(path, "utf8"), table(results)));
  }
}
