// Writes docs/api/brigbox.api.md from the compiled declarations: what each sub-path of the package exports, and every type that these declarations
// mention. A test fails while the file says anything else, so that the public API changes only on purpose.
//   npm run api                          builds, and writes the report
//   node scripts/api-report.mjs --check  compares it with the last build, and ends with status 1 if it differs
import { readFileSync, writeFileSync } from "node:fs";
import { apiReport, reportFile } from "./api-report/report.js";

const report = apiReport();
if (!process.argv.includes("--check")) writeFileSync(reportFile, report);
else if (readFileSync(reportFile, "utf8") !== report) {
  console.error("the public API differs from docs/api/brigbox.api.md; if it is to change, run: npm run api");
  process.exitCode = 1;
}
