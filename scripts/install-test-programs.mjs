// Installs the programs that brig is tested and measured with, each in its own folder in .bench: none is a dependency of brig. The browser
// for the page of brig view, the Redis server for queues and Python for Harbor are Debian's, unless there are others already.
// Without a network the tests that need one are skipped, so a failure is only reported.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** The first package of each list names the folder. */
const programs = [
  // BRIG_TEST_CODEX is the path of another Codex to use.
  ...(process.env.BRIG_TEST_CODEX === undefined ? [["@openai/codex@0.169.0"]] : []),
  // The newest tested Codex that still has `codex mcp-server`.
  ["@openai/codex@0.153.0"],
  ["@modelcontextprotocol/server-everything@2026.8.31"],
  ["@modelcontextprotocol/server-filesystem@2026.8.31"],
  ["@google/gemini-cli@0.61.0"],
  // Each is one program of several hundred megabytes, so they are installed on request. The tests of them are skipped otherwise.
  ...(process.env.BRIG_TEST_ALL_AGENTS === "1"
    ? [["@anthropic-ai/claude-code@2.1.330"], ["opencode-ai@1.18.33"]]
    : []),
  // It needs Node 22, which the package "node" brings.
  ["@modelcontextprotocol/conformance@0.1.16", "node@22.23.3"],
];

/** These cannot be used before their installation scripts have put a program in place. */
const needsScript = /^(?:node|@anthropic-ai\/claude-code|opencode-ai)@/;

for (const packages of programs) {
  const name = packages[0].replace(/^@[^/]*\//, "").replace("@", "-");
  const folder = fileURLToPath(new URL(`../.bench/${name}`, import.meta.url));
  if (existsSync(`${folder}/node_modules/.bin`)) continue;
  process.stderr.write(`installing ${name} for the tests\n`);
  const quietly = ["--no-audit", "--no-fund", "--fetch-retries=0"];
  const scripts = packages.some((one) => needsScript.test(one)) ? [] : ["--ignore-scripts"];
  const { status } = spawnSync("npm", ["install", "--prefix", folder, ...quietly, ...scripts, ...packages], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  if (status !== 0) process.stderr.write(`${name} cannot be installed: its tests are skipped\n`);
}

const debianPackages = [
  { name: "chromium", isThere: () => existsSync("/usr/bin/chromium"), tests: "the tests of its pages" },
  { name: "redis-server", isThere: () => existsSync("/usr/bin/redis-server"), tests: "the tests of queues" },
  { name: "python3", isThere: () => runs("python3"), tests: "those of Harbor's environment" },
  { name: "podman", isThere: () => existsSync("/usr/bin/podman"), tests: "the tests on Podman" },
];

for (const { name, isThere, tests } of debianPackages) {
  if (isThere()) continue;
  process.stderr.write(`installing Debian's ${name} for the tests\n`);
  const { status } = spawnSync("apt-get", ["install", "-y", "-qq", "--no-install-recommends", name], {
    stdio: ["ignore", "ignore", "inherit"],
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
  });
  if (status !== 0) process.stderr.write(`${name} cannot be installed: ${tests} are skipped\n`);
}

/** Whether there is one on the PATH, from wherever it is. */
function runs(program) {
  return spawnSync(program, ["--version"], { stdio: "ignore" }).status === 0;
}
