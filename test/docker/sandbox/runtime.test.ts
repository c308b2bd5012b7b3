import { expect } from "vitest";
import { testEngine } from "../../support/engine.js";
import { differenceLines, isGvisor, testRuntime } from "../../support/runtime-differences.js";
import { sandboxTest } from "../../support/sandbox.js";

sandboxTest("the suite runs on the runtime it was told to", async ({ sandbox }) => {
  const { defaultRuntime } = await sandbox.engine.info();
  expect(sandbox.proof.runtime).toBe(testRuntime ?? defaultRuntime);
  const lines = differenceLines();
  if (lines.length > 0)
    console.info(
      `\n${testRuntime ?? "Podman"} differs from the kernel itself in this:\n  ${lines.join("\n  ")}\n`,
    );
});

sandboxTest.skipIf(isGvisor)(
  "a runtime that is only called gVisor gets no runner that can be read, and nothing is left out of its proof [not on gVisor: this is about other runtimes]",
  async ({ open }) => {
    const engine = await testEngine();
    const info = await engine.info();
    const runtimes = info.runtimes.map((one) => ({ ...one, program: "/opt/gvisor/runsc" }));
    const sandbox = await open({ engine: { ...engine, info: async () => ({ ...info, runtimes }) } });
    expect(sandbox.proof.summary.kernel).toBe("shared");
    expect(sandbox.proof.notProvable.filter(({ reason }) => reason.includes("gVisor"))).toEqual([]);
    const { stdout } = await sandbox.exec(["cat", "/proc/1/cmdline"]);
    expect(stdout.split("\0")[0]).toBe("/.brig/runner");
  },
);
