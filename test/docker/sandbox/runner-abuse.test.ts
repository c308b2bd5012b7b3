import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect } from "vitest";
import type { Sandbox } from "../../../src/sandbox/sandbox.js";
import { forEachHostUser } from "../../support/each-host-user.js";
import { changedPolicy } from "../../support/policies.js";
import { runningCommands, zombieCount } from "../../support/processes.js";
import { differs, testRuntime, titled } from "../../support/runtime-differences.js";
import { isWatched, program, sandboxTest } from "../../support/sandbox.js";

const MEBIBYTE = 1024 * 1024;

const shell = (script: string) => ["bash", "-c", script];

/** "R" while PID 1 runs or is ready to, "S" while it waits. Read by a worker that is there already: it needs no new process. */
async function runnerState(sandbox: Sandbox): Promise<string | undefined> {
  const stat = (await sandbox.files.read("/proc/1/stat")).toString();
  return stat[stat.lastIndexOf(")") + 2];
}

async function runnerBytes(sandbox: Sandbox): Promise<number> {
  const status = (await sandbox.files.read("/proc/1/status")).toString();
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
}

async function requireAlive(sandbox: Sandbox): Promise<void> {
  expect((await sandbox.exec(["echo", "alive"])).stdout).toBe("alive\n");
}

describe("a command that turns on the runner's own processes", () => {
  forEachHostUser((userTest) => {
    userTest("ends writes under way without leaving half a file", async ({ sandbox, workspace }) => {
      const old = Buffer.alloc(1000, "o");
      const fresh = Buffer.alloc(8 * MEBIBYTE, "f");
      const names = Array.from({ length: 6 }, (_, i) => join(workspace, `written-${i}`));
      await Promise.all(names.map((name) => writeFile(name, old)));
      const writes = names.map((name) =>
        sandbox.files.write(name, fresh).then(
          () => "whole",
          () => "failed",
        ),
      );
      await sandbox.exec(shell("kill -9 -1"));
      const outcomes = await Promise.all(writes);
      for (const [i, name] of names.entries())
        expect((await readFile(name)).equals(outcomes[i] === "whole" ? fresh : old)).toBe(true);
      if (!differs("files.unnamed"))
        expect((await readdir(workspace)).filter((name) => name.startsWith(".brig-"))).toEqual([]);
      await requireAlive(sandbox);
    });

    userTest("cancels no later write with a signal that stayed pending", async ({ sandbox, workspace }) => {
      await sandbox.exec(shell("trap '' TERM; kill -TERM -1; sleep 0.1; kill -TERM -1; true"));
      const names = Array.from({ length: 12 }, (_, i) => join(workspace, `later-${i}`));
      await Promise.all(names.map((name) => sandbox.files.write(name, name)));
      for (const name of names) expect(await readFile(name, "utf8")).toBe(name);
    });

    userTest("leaves nothing unreaped, whatever it left behind", async ({ sandbox }) => {
      await sandbox.exec(shell("for i in $(seq 200); do (setsid sh -c 'sleep 0.1' &); done"));
      await expect.poll(() => zombieCount(sandbox)).toBe(0);
    });
  });
});

describe("a result whose reader is slow", () => {
  sandboxTest("still has every byte its command wrote before it ended", async ({ sandbox }) => {
    const spawned = await sandbox.spawn(shell("head -c 500000 /dev/zero; exit 3"));
    // Longer than the runner waits for a pipe that something else holds open.
    await sleep(800);
    let bytes = 0;
    for await (const piece of spawned.stdout) bytes += (piece as Buffer).length;
    expect(bytes).toBe(500_000);
    expect((await spawned.exit).exitCode).toBe(3);
  });

  sandboxTest("does not keep a kill waiting", async ({ sandbox }) => {
    const spawned = await sandbox.spawn(["yes"]);
    await sleep(200);
    await spawned.kill();
    expect((await spawned.exit).signal).toMatch(/SIGTERM|SIGKILL/);
  });
});

describe("a command that closes its output and runs on", () => {
  sandboxTest("is waited for", async ({ sandbox }) => {
    const result = await sandbox.exec(shell("echo out; exec >&- 2>&-; sleep 0.5; exit 7"));
    expect(result).toMatchObject({ stdout: "out\n", exitCode: 7 });
    expect(result.durationMs).toBeGreaterThan(400);
  });

  sandboxTest("and whose output went to a process elsewhere, ends without it", async ({ sandbox }) => {
    await sandbox.exec(program("keeps-descriptors.py", "keep"));
    const result = await sandbox.exec(program("keeps-descriptors.py", "give"));
    expect(result).toMatchObject({ stdout: "given\n", exitCode: 0 });
    const [holder, ...others] = await runningCommands(sandbox);
    expect([holder?.endsWith(" keep"), others]).toEqual([true, []]);
    await sandbox.exec(["pkill", "python3"]);
  });
});

describe("limits", () => {
  sandboxTest(
    "output after the result ends at a mebibyte per call, and costs nobody else",
    async ({ open }) => {
      let lateBytes = 0;
      const sandbox = await open({
        onLateOutput: (data) => {
          lateBytes += data.length;
        },
      });
      await sandbox.exec(shell("yes & exit 0"));
      await expect.poll(() => lateBytes).toBeGreaterThan(0);
      await sleep(1500);
      for (let i = 0; i < 50; i += 1) await requireAlive(sandbox);
      expect(lateBytes).toBeLessThanOrEqual(MEBIBYTE);
    },
  );

  sandboxTest("very many calls at once each get their own result", async ({ sandbox }) => {
    const results = await Promise.all(
      Array.from({ length: testRuntime ? 200 : 1000 }, (_, i) =>
        sandbox.exec(["sh", "-c", 'echo "$0"; exit "$1"', `${i}`, `${i % 250}`]),
      ),
    );
    // Where the process limit is reached a call may be refused, but never answered with another's result.
    const wrong = results.filter(
      ({ stdout, exitCode, stderr }, i) =>
        !(stdout === `${i}\n` && exitCode === i % 250) && !/^brig: no process can be started/.test(stderr),
    );
    expect(wrong).toEqual([]);
    await requireAlive(sandbox);
  });

  forEachHostUser((userTest) => {
    userTest.skipIf(differs("limits.pids"))(
      titled(
        "limits.pids",
        "while no process can be started, calls say so, files can be read and PID 1 rests",
      ),
      async ({ open }) => {
        const sandbox = await open();
        const full = await sandbox.spawn(program("fills-processes.py"));
        for await (const piece of full.stdout) if (String(piece).includes("full")) break;
        await expect.poll(() => runnerState(sandbox)).toBe("S");
        const { exitCode, stderr } = await sandbox.exec(["true"]);
        expect([exitCode, stderr]).toEqual([126, expect.stringContaining("no process can be started")]);
        expect((await sandbox.files.stat("/etc/passwd")).type).toBe("file");
        await full.kill();
        await requireAlive(sandbox);
      },
    );
  });

  sandboxTest(
    "with its descriptors used up, a stream that breaks is opened again and trees are killed",
    async ({ open, directory }) => {
      const sandbox = await open({ policyFile: await changedPolicy(directory, { openFiles: 64 }) });
      const many = Array.from({ length: 60 }, () =>
        sandbox.exec(shell("setsid sleep 300 & sleep 300"), { timeoutMs: 1500 }),
      );
      await sleep(300);
      sandbox.link.breakStream();
      // While no descriptor is left a read may be refused.
      await expect.poll(() => runnerState(sandbox).catch(() => "")).toBe("S");
      const results = await Promise.all(many);
      expect(results.filter(({ timedOut }) => timedOut).length).toBeGreaterThan(3);
      for (const { timedOut, stderr } of results) if (!timedOut) expect(stderr).toMatch(/^brig: no /);
      await expect.poll(async () => (await sandbox.exec(shell("pgrep -c sleep"))).stdout).toBe("0\n");
    },
  );

  sandboxTest("after bursts in both directions PID 1 is small again", async ({ open }) => {
    const sandbox = await open();
    const bytes = 3 * MEBIBYTE;
    await sandbox
      .exec(["true", ...Array.from({ length: 25 }, () => "x".repeat(100_000))])
      .catch(() => undefined);
    await Promise.all(
      Array.from({ length: 8 }, () =>
        sandbox.exec(["head", "-c", String(bytes), "/dev/zero"], { encoding: "buffer" }),
      ),
    );
    await expect
      .poll(() => runnerBytes(sandbox), { interval: 1500 })
      .toBeLessThan((isWatched ? 64 : 2) * MEBIBYTE);
  });
});
