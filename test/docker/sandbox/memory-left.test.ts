import { describe, expect } from "vitest";
import { promised } from "../../guarantees.js";
import { becomeHostUser, HOST_USERS } from "../../support/host-users.js";
import { changedPolicy } from "../../support/policies.js";
import { differs, titled } from "../../support/runtime-differences.js";
import { program, sandboxTest } from "../../support/sandbox.js";

/** What a command can fill and leave behind, without a process that holds it; see fills-memory.py. */
const FILLINGS = [
  "shared-memory",
  "shared-memory-segments",
  "semaphores",
  "message-queues",
  "posix-queues",
  "shm-bytes",
  "shm-files",
  "tmp-bytes",
  "tmp-files",
  "home-files",
  "everything",
];

const works =
  "python3 -c 'print(1)' && node -e 'console.log(2)' && git --version && free=$(df --output=avail /tmp)";

for (const user of HOST_USERS)
  describe.skipIf(differs("limits.ipc"))(`what a command of uid ${user.uid} fills and leaves`, () => {
    sandboxTest.for(FILLINGS)(
      promised("contained.memory", titled("limits.ipc", "%s, and python3, node and git start all the same")),
      async (filling, { open, directory }) => {
        const limits = { memoryMb: 512, sizeMb: 64, shmMb: 32, maxInodes: 200_000, pids: 128 };
        const policyFile = await changedPolicy(directory, limits);
        becomeHostUser(user);
        const sandbox = await open({ workspaceKind: "none", policyFile });
        const filled = await sandbox.exec(program("fills-memory.py", filling));
        expect(filled.stdout, filled.output).toContain("full: ");
        const after = await sandbox.exec(["sh", "-c", works]);
        expect([filling, after.exitCode, after.output]).toEqual([
          filling,
          0,
          expect.stringMatching(/^1\n2\ngit version/),
        ]);
      },
    );
  });

sandboxTest.skipIf(differs("limits.ipc"))(
  titled("limits.ipc", "shared memory goes with the last process that uses it"),
  async ({ open }) => {
    const sandbox = await open({ workspaceKind: "none" });
    const filled = await sandbox.exec(program("fills-memory.py", "shared-memory"));
    expect(filled.stdout).toContain("full: ");
    expect((await sandbox.exec(["sh", "-c", "tail -n +2 /proc/sysvipc/shm"])).stdout).toBe("");
  },
);
