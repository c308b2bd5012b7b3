// Installs the Codex that brig's exec-server is tested and measured with, beside the compiled bench: it is no dependency of brig.
// Without a network the tests that need it are skipped, so a failure is only reported. BRIG_TEST_CODEX names another program.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const version = "0.169.0";
const folder = fileURLToPath(new URL(`../.bench/codex-${version}`, import.meta.url));

if (process.env.BRIG_TEST_CODEX === undefined && !existsSync(`${folder}/node_modules/.bin/codex`)) {
  process.stderr.write(`installing codex ${version} for the tests\n`);
  const quietly = ["--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=0"];
  const { status } = spawnSync(
    "npm",
    ["install", "--prefix", folder, ...quietly, `@openai/codex@${version}`],
    {
      stdio: ["ignore", "ignore", "inherit"],
    },
  );
  if (status !== 0) process.stderr.write(`codex ${version} cannot be installed: its tests are skipped\n`);
}
