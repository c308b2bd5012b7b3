import { expect } from "vitest";
import { differenceLines, testRuntime } from "../../support/runtime-differences.js";
import { sandboxTest } from "../../support/sandbox.js";

sandboxTest("the suite runs on the runtime it was told to", async ({ sandbox }) => {
  const { defaultRuntime } = await sandbox.engine.info();
  expect(sandbox.proof.runtime).toBe(testRuntime ?? defaultRuntime);
  const lines = differenceLines();
  if (lines.length > 0)
    console.info(`\n${testRuntime} differs from the kernel itself in this:\n  ${lines.join("\n  ")}\n`);
});
