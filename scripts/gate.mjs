// Checks a change: lint and types, all unit tests, what the README tells a newcomer to run, each test that proves a promise or executes a line that has
// changed, and the other parts of `npm run test:all` that the change concerns. What runs depends on the change alone.
//   node scripts/gate.mjs [--base COMMIT] [--list]
// The change begins at the commit in .ci/base, or at COMMIT. --list only says which tests would run, and why.
// After BRIG_CHECK_MINUTES (85) the check ends as failed, and names what still runs. The last line is "N passed, N failed".
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { changesSince } from "./gate/change.js";
import { describeSelection } from "./gate/describe.js";
import { selectTests } from "./gate/selection.js";
import { Steps } from "./gate/steps.js";

const { values } = parseArgs({
  options: { base: { type: "string" }, list: { type: "boolean", default: false } },
});

const change = changesSince(values.base);
const selection = await selectTests({ paths: change?.paths ?? null });
const description = describeSelection(change, selection);
process.stdout.write(description);
if (!values.list) await check();

async function check() {
  const place = mkdtempSync(join(tmpdir(), "brig-check-"));
  const endsAt = Date.now() + 60_000 * Number(process.env.BRIG_CHECK_MINUTES ?? 85);
  const steps = new Steps({ place, endsAt });
  try {
    await steps.run(["npm", "run", "check"]);
    await steps.run(["npm", "run", "demo"]);
    await steps.runTests("unit", ["--project", "unit"]);
    await steps.runTests("containers", [
      ...projects("docker", "e2e", "slow", "deep"),
      ...selection.reasons.keys(),
    ]);
    for (const part of selection.parts) await steps.runPart(part);
    await steps.runFailedAgain();
    process.stdout.write(`\n${description}`);
    process.exitCode = await steps.summarize();
  } finally {
    rmSync(place, { recursive: true });
  }
}

function projects(...names) {
  return names.flatMap((name) => ["--project", name]);
}
