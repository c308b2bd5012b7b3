import { describe, expect } from "vitest";
import { ProcessorClock, readProcessorCounts } from "../../../src/batch/runs/processors.js";
import { parseMountinfo } from "../../../src/sandbox/proof/mountinfo.js";
import { openedSandboxOf } from "../../../src/sandbox/sandbox.js";
import { forEachHostUser } from "../../support/each-host-user.js";
import { changedPolicy } from "../../support/policies.js";
import { differs, isGvisor, titled } from "../../support/runtime-differences.js";
import { sandboxTest } from "../../support/sandbox.js";

/** The limits of memory and of processes, by the version of control groups. */
const FILES = {
  1: ["/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/pids/pids.max"],
  2: ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/pids.max"],
} as const;

const WORK = "i=0; while [ $i -lt 30000 ]; do i=$((i + 1)); done";

describe.skipIf(isGvisor)("control groups [not on gVisor: its files of control groups are its own]", () => {
  forEachHostUser((userTest) => {
    for (const mode of ["workspace-write", "danger-full-access"] as const)
      userTest(`say what the policy of ${mode} says, and no command can change it`, async ({ open }) => {
        const sandbox = await open({ mode });
        const { limits } = openedSandboxOf(sandbox).plan;
        const files = FILES[sandbox.proof.engine.cgroupVersion === "2" ? 2 : 1];
        const { stdout } = await sandbox.exec(["cat", ...files]);
        expect(stdout).toBe(`${limits.memoryBytes}\n${limits.pids}\n`);
        for (const file of files) {
          const changed = await sandbox.exec(["sh", "-c", `echo max > ${file}`]);
          expect(changed.stderr).toMatch(/Read-only file system|Permission denied/);
        }
        expect((await sandbox.exec(["cat", ...files])).stdout).toBe(stdout);
      });

    userTest("are in a namespace of their own, which shows no name of the host's", async ({ sandbox }) => {
      const { stdout } = await sandbox.exec(["cat", "/proc/self/cgroup"]);
      const paths = stdout.split("\n").flatMap((line) => line.split(":")[2] ?? []);
      expect(paths.length).toBeGreaterThan(0);
      expect(paths.filter((path) => path !== "/")).toEqual([]);
      const mounts = parseMountinfo(await sandbox.files.read("/proc/self/mountinfo"));
      const groups = mounts.filter(({ fileSystem }) => fileSystem.startsWith("cgroup"));
      expect(groups.length).toBeGreaterThan(0);
      expect(groups.filter(({ root, options }) => root !== "/" || !options.includes("ro"))).toEqual([]);
    });
  });

  sandboxTest.skipIf(differs("limits.memory"))(
    titled("limits.memory", "end a command that takes more memory, which says why, and the session lives"),
    async ({ open, directory }) => {
      const policyFile = await changedPolicy(directory, { memoryMb: 128, sizeMb: 16, shmMb: 8 });
      const sandbox = await open({ policyFile });
      const bomb = ["python3", "-c", "x = bytearray(400_000_000); x[::4096] = b'x' * len(x[::4096])"];
      for (let i = 0; i < 2; i++) {
        expect(await sandbox.exec(bomb)).toMatchObject({
          exitCode: 137,
          signal: "SIGKILL",
          outOfMemory: true,
        });
        const next = await sandbox.exec(["sh", "-c", "echo fine; exit 2"]);
        expect(next).toMatchObject({ exitCode: 2, stdout: "fine\n", outOfMemory: false });
      }
      // A shell that outlives its child still tells that there was not enough.
      const shell = await sandbox.exec(["sh", "-c", `"$@"; echo "code $?"; exit 1`, "sh", ...bomb]);
      expect(shell).toMatchObject({ exitCode: 1, stdout: "code 137\n", outOfMemory: true });
    },
  );

  sandboxTest("count what a sandbox used, waited for, and was kept from by its limit", async ({ open }) => {
    const sandbox = await open();
    const clock = new ProcessorClock(sandbox);
    const before = await clock.read();
    const workers = Array(4).fill(`(${WORK}) &`).join(" ");
    await sandbox.exec(["sh", "-c", `${workers} wait`]);
    const after = await clock.read();
    expect(after?.usedMs).toBeGreaterThan(before?.usedMs ?? Number.POSITIVE_INFINITY);
    expect(after?.machineMs).toBeGreaterThan(before?.machineMs ?? Number.POSITIVE_INFINITY);
    expect(after?.waitedMs).toBeGreaterThanOrEqual(before?.waitedMs ?? Number.POSITIVE_INFINITY);
    const counts = await readProcessorCounts(sandbox);
    expect(counts.usedMs).toBeGreaterThanOrEqual(after?.usedMs ?? Number.POSITIVE_INFINITY);
    expect(counts.throttledMs).not.toBeNull();
  });
});
