import { readFile } from "node:fs/promises";
import { describe, expect } from "vitest";
import { attempt } from "../../support/attempts.js";
import { becomeHostUser, HOST_USERS } from "../../support/host-users.js";
import { differs, titled } from "../../support/runtime-differences.js";
import { sandboxTest } from "../../support/sandbox.js";

const readNothing = ["sh", "-c", "cat; stat -L -c %F,%t:%T /proc/self/fd/0 /dev/null"];
const nothing = "character special file,1:3\ncharacter special file,1:3\n";

for (const user of HOST_USERS)
  describe.skipIf(differs("modes.devices"))(`for uid ${user.uid}`, () => {
    sandboxTest(
      titled("modes.devices", "no device can be replaced, changed or added, and an empty stdin stays empty"),
      async ({ open }) => {
        becomeHostUser(user);
        const sandbox = await open({ workspaceKind: "none" });
        const refused = expect.stringMatching(/^(?:EROFS|EACCES)$/);
        expect(
          await attempt(sandbox, [
            ["rename", "/dev/null", "/dev/null2"],
            ["unlink", "/dev/null"],
            ["create", "/dev/file"],
            ["mkdir", "/dev/directory"],
            ["symlink", "/tmp", "/dev/link"],
            ["unlink", "/dev/ptmx"],
            ["rename", "/dev/fd", "/dev/other"],
            ["chmod", "/dev/null"],
            ["append", "/dev/null"],
            ["create", "/dev/shm/file"],
          ]),
        ).toEqual([
          ...Array.from({ length: 7 }, () => refused),
          expect.stringMatching(/^(?:EROFS|EPERM)$/),
          "ok",
          "ok",
        ]);
        expect((await sandbox.exec(readNothing)).stdout).toBe(nothing);
        const pty = await sandbox.exec(["python3", "-c", "import pty; pty.openpty(); print('pty')"]);
        expect(pty.stdout).toBe("pty\n");
      },
    );

    sandboxTest(
      titled(
        "modes.devices",
        "PID 1 cannot be named as the first to be killed, and the kernel's memory is not shown",
      ),
      async ({ open }) => {
        becomeHostUser(user);
        const sandbox = await open({ workspaceKind: "none" });
        const settings = ["/proc/1/oom_score_adj", "/proc/1/task/1/oom_score_adj", "/proc/1/autogroup"];
        const refused = differs("devices.runner-settings")
          ? expect.stringMatching(/^(?:ok|EACCES|ENOENT)$/)
          : expect.stringMatching(/^(?:EROFS|EACCES|ENOENT)$/);
        const { pid } = (await sandbox.engine.inspectContainer(sandbox.containerId)) ?? {};
        const score = async () => await readFile(`/proc/${pid}/oom_score_adj`, "utf8");
        const before = await score();
        expect(
          await attempt(
            sandbox,
            settings.map((path) => ["append", path]),
          ),
        ).toEqual(settings.map(() => refused));
        await sandbox.exec(["sh", "-c", `echo 999 | tee ${settings.join(" ")}`]);
        expect(await score()).toBe(before);
        const shown = ["slabinfo", "vmallocinfo", "kpagecount", "kpageflags", "pagetypeinfo", "timer_list"];
        const read = `cat ${shown.map((name) => `/proc/${name}`).join(" ")} /sys/kernel/slab/*/* 2>/dev/null | wc -c`;
        expect((await sandbox.exec(["sh", "-c", read])).stdout).toBe("0\n");
        // Only opened: reading it makes a device.
        const devices = await attempt(sandbox, [["open", "/sys/class/zram-control/hot_add"]]);
        expect(devices).toEqual([expect.stringMatching(/^(?:ENOENT|EACCES)$/)]);
      },
    );
  });

sandboxTest.skipIf(differs("devices.null"))(
  titled("devices.null", "an empty stdin stays empty where root has put a file in the place of /dev/null"),
  async ({ open }) => {
    const sandbox = await open({ workspaceKind: "none", mode: "danger-full-access" });
    const replace = "mv /dev/null /dev/null2 && echo forged > /dev/null && cat /dev/null";
    expect((await sandbox.exec(["sh", "-c", replace])).stdout).toBe("forged\n");
    expect((await sandbox.exec(["cat"])).output).toBe("");
    expect((await sandbox.exec(["stat", "-L", "-c", "%t:%T", "/proc/self/fd/0"])).stdout).toBe("1:3\n");
  },
);
