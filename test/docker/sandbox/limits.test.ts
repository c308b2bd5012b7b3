import { describe, expect } from "vitest";
import { listSandboxes } from "../../../src/cli/ps/listed-sandboxes.js";
import { readEnvironment } from "../../../src/lib/env.js";
import { connectEngine } from "../../../src/sandbox/docker/connect.js";
import { openedSandboxOf } from "../../../src/sandbox/sandbox.js";
import { differs, titled } from "../../support/runtime-differences.js";
import { sandboxTest } from "../../support/sandbox.js";

const MIB = 1024 ** 2;

/** More than a sandbox with little memory may keep in /tmp, and less than one may with the policy's. */
const fill = ["sh", "-c", `head -c ${200 * MIB} /dev/zero > /tmp/x; status=$?; rm /tmp/x; exit $status`];

describe("limits in place of the policy's", () => {
  sandboxTest.skipIf(differs("limits.memory"))(
    titled("limits.memory", "are those of the kernel, and what is in memory shrinks with them"),
    async ({ open }) => {
      const sandbox = await open({ limits: { memoryMb: 512, cpus: 0.5, pids: 64 } });
      expect(sandbox.proof.differences).toEqual([]);
      expect(openedSandboxOf(sandbox).plan.limits).toMatchObject({
        memoryBytes: 512 * MIB,
        nanoCpus: 5e8,
        pids: 64,
      });
      const { stdout } = await sandbox.exec(["df", "--block-size=1M", "--output=size", "/tmp", "/dev/shm"]);
      expect(stdout.split(/\s+/).slice(1, 3)).toEqual(["128", "16"]);
      const full = await sandbox.exec(fill);
      expect(full.exitCode).not.toBe(0);
      expect(full).toMatchObject({ outOfMemory: false, stderr: expect.stringContaining("No space left") });
      expect(await sandbox.exec(["true"])).toMatchObject({ exitCode: 0 });
    },
  );

  sandboxTest("leave room for that file where there are none", async ({ sandbox }) => {
    expect(await sandbox.exec(fill)).toMatchObject({ exitCode: 0, stderr: "" });
  });

  sandboxTest("may be as small as they are taken: commands still run", async ({ open }) => {
    const sandbox = await open({ limits: { memoryMb: 64, cpus: 0.1, pids: 16 } });
    expect(await sandbox.exec(["sh", "-c", "echo x > /tmp/x && cat /tmp/x"])).toMatchObject({
      stdout: "x\n",
    });
  });
});

sandboxTest(
  "what brig ps lists follows the network of a sandbox, and ends with it",
  async ({ open, directory }) => {
    const environment = readEnvironment({ ...process.env, BRIG_HOME: `${directory}/home` });
    const listed = async () =>
      await listSandboxes(environment.brigHome, (endpoint) => connectEngine({ env: environment, endpoint }));
    const sandbox = await open({ environment, network: "allowlist:a.test" });
    const { id, workingDirectory: workspace } = sandbox;
    const about = { name: null, id, state: "running", mode: "workspace-write", workspace, confirmed: true };
    expect(await listed()).toMatchObject([{ ...about, network: "allowlist:a.test" }]);
    sandbox.setNetwork("allowlist:b.test");
    expect(await listed()).toMatchObject([{ ...about, network: "allowlist:b.test" }]);
    await sandbox.close();
    expect(await listed()).toEqual([]);
  },
);
