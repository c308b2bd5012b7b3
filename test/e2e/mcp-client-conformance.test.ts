import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "rolldown";
import { describe, expect, it, onTestFinished } from "vitest";
import { withReason } from "../support/skip-reasons.js";
import { testProgram } from "../support/test-program.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const conformance = await testProgram("conformance");
/** The suite does not run on Node 20, and brings a newer one. */
const newerNode = join(dirname(conformance.path), "node");
const fixtures = join(root, "test/fixtures");

/** One file, because the suite starts it two dozen times at once. */
async function compiledClient(directory: string): Promise<string> {
  const file = join(directory, "client.mjs");
  await build({
    cwd: root,
    platform: "node",
    transform: { target: "node20" },
    input: join(fixtures, "mcp-conformance-client.ts"),
    output: { file, format: "esm", codeSplitting: false },
    logLevel: "silent",
  });
  return file;
}

/** Runs the suite; its exit code is 0 if nothing fails but what is expected to. */
async function conform(...selection: string[]): Promise<{ exitCode: number; output: string }> {
  const directory = mkdtempSync(join(tmpdir(), "brig-conformance-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const client = await compiledClient(directory);
  const suite = spawn(
    newerNode,
    [
      conformance.path,
      "client",
      ...selection,
      ...["--command", `${process.execPath} ${client}`],
      ...["--output-dir", directory],
      ...["--timeout", "240000"],
    ],
    { cwd: directory, env: { PATH: `${dirname(newerNode)}:${process.env.PATH}` } },
  );
  const output: string[] = [];
  suite.stdout.on("data", (chunk) => output.push(String(chunk)));
  suite.stderr.on("data", (chunk) => output.push(String(chunk)));
  const [exitCode] = await once(suite, "close");
  return { exitCode, output: output.join("") };
}

const title = withReason("the MCP client, in the official conformance suite,", conformance.missing);
describe.skipIf(conformance.missing !== null)(title, () => {
  // One after the other: the suite starts all scenarios of a selection at once, and then a busy machine is too slow for sse-retry.
  it.each(["initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry"])(
    "passes %s",
    async (scenario) => {
      const { exitCode, output } = await conform("--scenario", scenario);
      expect(exitCode, output).toBe(0);
      expect(output).toContain("OVERALL: PASSED");
    },
  );

  it("fails only those scenarios of logins that are listed with a reason", async () => {
    const expected = join(fixtures, "mcp-conformance-expected-failures.yml");
    const { exitCode, output } = await conform("--suite", "auth", "--expected-failures", expected);
    expect(exitCode, output.slice(-4000)).toBe(0);
    expect(output).toContain("auth/metadata-default");
  });
});
