import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root } from "../setup/run.js";

/** How a part ended: "passed", "failed", or "skipped" if no test of it can run on this machine, which it says in its last line. */
export async function runPart({ command, isVitest = false }, { signal }) {
  const place = mkdtempSync(join(tmpdir(), "brig-part-"));
  const report = join(place, "report.json");
  const begin = Date.now();
  try {
    const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${report}`];
    const { status, last } = await ran(isVitest ? [...command, ...reporters] : command, {
      signal,
      env: { ...process.env, BRIG_TEST_REPORT: report },
    });
    const seconds = Math.round((Date.now() - begin) / 1000);
    const counts = countsIn(report);
    if (counts === null && status === 0) return { outcome: "skipped", why: last, seconds };
    return { outcome: status === 0 ? "passed" : "failed", ...(counts ?? { why: last }), seconds };
  } finally {
    rmSync(place, { recursive: true });
  }
}

/** Null if no test ran. */
function countsIn(report) {
  try {
    const { numPassedTests, numFailedTests, numPendingTests } = JSON.parse(readFileSync(report, "utf8"));
    return { passed: numPassedTests, failed: numFailedTests, skipped: numPendingTests };
  } catch (error) {
    if (error.code === "ENOENT" || error instanceof SyntaxError) return null;
    throw error;
  }
}

function ran([program, ...argv], { signal, env }) {
  return new Promise((resolve) => {
    const child = spawn(program, argv, { cwd: root, env, signal, stdio: ["ignore", "pipe", "inherit"] });
    let end = "";
    child.stdout.on("data", (chunk) => {
      process.stdout.write(chunk);
      end = `${end}${chunk}`.slice(-2000);
    });
    child.once("error", (error) => resolve({ status: 127, last: error.message }));
    child.once("close", (status) => resolve({ status, last: end.trim().split("\n").at(-1) ?? "" }));
  });
}
