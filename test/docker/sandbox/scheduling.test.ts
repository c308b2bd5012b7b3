import { describe, expect } from "vitest";
import { forEachHostUser } from "../../support/each-host-user.js";
import { differs, titled } from "../../support/runtime-differences.js";

const python = (script: string) => ["python3", "-c", script];

/** Tries to put every process it sees behind all others, and says of each call which processes took it. */
const putEverybodyBehind = `
import os
def tries(pid):
    yield "setpriority", lambda: os.setpriority(os.PRIO_PROCESS, pid, 19)
    yield "sched_setscheduler", lambda: os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))
    yield "sched_setaffinity", lambda: os.sched_setaffinity(pid, {min(os.sched_getaffinity(0))})
for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
    if pid == os.getpid(): continue
    for name, attempt in tries(pid):
        before = os.sched_getaffinity(pid)
        try: attempt(); print(name, "granted" if os.sched_getaffinity(pid) == before else "moved")
        except PermissionError: print(name, "refused")
for which, who in ((os.PRIO_PGRP, os.getpgrp()), (os.PRIO_USER, os.getuid()), (os.PRIO_USER, 0)):
    try: os.setpriority(which, who, 19); print("setpriority granted")
    except PermissionError: print("setpriority refused")
`;

describe.skipIf(differs("runner.scheduling"))(titled("runner.scheduling", "a command"), () => {
  forEachHostUser((userTest) => {
    userTest("goes behind the runner, and cannot get before it", async ({ sandbox }) => {
      const script =
        "import os; print(os.getpriority(os.PRIO_PROCESS, 1), os.getpriority(os.PRIO_PROCESS, 0))";
      const [runner, own] = (await sandbox.exec(python(script))).stdout.trim().split(" ").map(Number);
      expect(own).toBe(Math.min(19, (runner ?? 0) + 15));
      const rise =
        "import os\ntry: os.setpriority(os.PRIO_PROCESS, 0, 0)\nexcept PermissionError: print('refused')";
      expect((await sandbox.exec(python(rise))).stdout).toBe("refused\n");
      expect((await sandbox.exec(["nice", "-n", "2", "nice"])).stdout).toBe(`${(own ?? 0) + 2}\n`);
    });

    userTest("puts neither the runner nor a supervisor behind", async ({ sandbox }) => {
      const running = await sandbox.spawn(["sleep", "301"]);
      const before = await sandbox.exec(python("import os; print(os.sched_getaffinity(0))"));
      const attempt = await sandbox.exec(python(putEverybodyBehind));
      expect([...new Set(attempt.stdout.trim().split("\n"))].sort()).toEqual([
        "sched_setaffinity granted",
        "sched_setscheduler refused",
        "setpriority refused",
      ]);
      const after = await sandbox.exec(python("import os; print(os.sched_getaffinity(0))"));
      expect(after.stdout).toBe(before.stdout);
      await running.kill();
    });

    userTest("and 399 like it that spin keep no kill of theirs waiting", async ({ open }) => {
      const sandbox = await open();
      const spin = "for i in $(seq 400); do (while :; do :; done) & done; wait";
      const timeoutMs = 3000;
      const { timedOut, durationMs } = await sandbox.exec(["bash", "-c", spin], { timeoutMs });
      expect(timedOut).toBe(true);
      process.stdout.write(
        `the timeout of 400 that spin was over ${Math.round(durationMs - timeoutMs)} ms late\n`,
      );
      expect((await sandbox.exec(["echo", "fine"])).stdout).toBe("fine\n");
    });
  });
});
