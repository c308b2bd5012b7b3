import { fileURLToPath } from "node:url";
import { execa } from "execa";
import { expect, it, onTestFinished } from "vitest";
import { containersOf } from "../support/cli.js";
import { testRuntime } from "../support/runtime-differences.js";
import { temporaryDirectory } from "../support/sandbox.js";

const fixture = fileURLToPath(new URL("../fixtures/public-api.mjs", import.meta.url));

it("a program that imports the package runs commands, terminals, files and tools in a sandbox, and ends by itself", async () => {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory[Symbol.asyncDispose]());
  const args = [fixture, directory.path, ...(testRuntime === undefined ? [] : [testRuntime])];
  const child = execa(process.execPath, args, { timeout: 60_000 });
  const { stdout } = await child;
  expect(JSON.parse(stdout)).toEqual({
    exec: {
      status: 4,
      stdout: "given\n/tmp\n",
      stderr: "value\n",
      output: "given\n/tmp\nvalue\n".length,
      timedOut: false,
      truncated: false,
      isTimed: true,
    },
    seen: "given\n/tmp\n",
    bytes: [255],
    terminal: { text: "33 99\r\n", exitCode: 0 },
    files: { sizeBytes: 7, content: "content", names: ["inner", "renamed"], missing: "file.not-found" },
    call: { success: true, says: true },
    id: "string",
    differences: [],
  });
  expect(await containersOf(child.pid)).toEqual([]);
});
