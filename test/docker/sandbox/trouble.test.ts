import { execFileSync } from "node:child_process";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect } from "vitest";
import { call, harmedEngine } from "../../support/engine.js";
import { type BreakableSandbox, openBreakable } from "../../support/open-sandbox.js";
import { changedPolicy } from "../../support/policies.js";
import { runningCommands } from "../../support/processes.js";
import { differs, titled } from "../../support/runtime-differences.js";
import { sandboxTest } from "../../support/sandbox.js";

/** What brig itself never asks of the engine. */
async function ask(sandbox: BreakableSandbox, action: "pause" | "unpause" | "stop?t=0"): Promise<void> {
  const { socketPath, path } = requestFor(sandbox, action);
  await text(await call(socketPath, { method: "POST", path }));
}

function requestFor(sandbox: BreakableSandbox, action: string): { socketPath: string; path: string } {
  const socketPath = new URL(sandbox.engine.endpoint).pathname;
  return { socketPath, path: `/containers/${sandbox.containerId}/${action}` };
}

/**
 * Restarts the container from another program, while this one stands still: it would remove a container of which it sees that it has
 * been stopped, if the engine needs long to start it again.
 */
/** False where the engine removes the container instead: now and then it begins with that, for it is to be removed at its end, before it starts it. */
function restart(sandbox: BreakableSandbox): boolean {
  const { socketPath, path } = requestFor(sandbox, "restart?t=0");
  const source = `
    const [socketPath, path] = process.argv.slice(1);
    require("node:http")
      .request({ socketPath, method: "POST", path }, ({ statusCode }) => process.stdout.write(String(statusCode), () => process.exit()))
      .end();`;
  const status = Number(
    execFileSync(process.execPath, ["-e", source, socketPath, path], { encoding: "utf8" }),
  );
  if (status >= 300 && status !== 500) throw new Error(`the engine answered ${status}`);
  return status < 300;
}

describe("a container that is taken away", () => {
  sandboxTest("during calls: each ends with what happened, and the host goes on", async ({ open }) => {
    const sandbox = await open();
    const calls: Promise<unknown>[] = [
      sandbox.exec(["sleep", "301"]),
      sandbox.exec(["cat"], { stdin: Buffer.alloc(3_000_000) }).then(() => sandbox.exec(["sleep", "302"])),
      sandbox.exec(["sh", "-c", "yes > /dev/null"], { timeoutMs: 100_000 }),
      sandbox.files.write("/tmp/x", Buffer.alloc(1000)).then(() => sandbox.exec(["sleep", "303"])),
    ];
    calls.push((await sandbox.spawn(["cat"])).exit);
    const outcomes = Promise.all(calls.map((one) => one.catch((error) => error)));
    await sleep(300);
    await sandbox.engine.removeContainer(sandbox.containerId);
    for (const outcome of await outcomes)
      expect(outcome).toMatchObject({ code: "sandbox.gone", reason: "killed" });
    await expect(sandbox.exec(["true"])).rejects.toMatchObject({ code: "sandbox.gone", reason: "killed" });
    await sandbox.close();
  });

  sandboxTest("stopped from outside: the same", async ({ open }) => {
    const sandbox = await open();
    const running = expect(sandbox.exec(["sleep", "301"])).rejects.toMatchObject({
      code: "sandbox.gone",
      reason: "killed",
    });
    await ask(sandbox, "stop?t=0");
    await running;
  });

  sandboxTest("restarted from outside: the calls end, and the reason is a restart", async ({ open }) => {
    const started = async () => {
      const sandbox = await open();
      await sandbox.exec(["true"]);
      return { sandbox, running: sandbox.exec(["sleep", "301"]).catch((error: unknown) => error) };
    };
    let one = await started();
    for (let tries = 1; !restart(one.sandbox); tries++) {
      expect(tries).toBeLessThan(10);
      one = await started();
    }
    const { sandbox, running } = one;
    const { engine, containerId } = sandbox;
    const gone = { code: "sandbox.gone", reason: "restarted" };
    expect(await running).toMatchObject(gone);
    await expect(sandbox.exec(["true"])).rejects.toMatchObject(gone);
    await sandbox.close();
    expect(await engine.inspectContainer(containerId)).toBeNull();
  });

  sandboxTest("while nobody calls: the next call says so", async ({ open }) => {
    const sandbox = await open();
    await sandbox.engine.removeContainer(sandbox.containerId);
    await expect(sandbox.exec(["true"])).rejects.toMatchObject({ code: "sandbox.gone", reason: "killed" });
    await expect(sandbox.exec(["true"])).rejects.toMatchObject({ code: "sandbox.gone", reason: "killed" });
  });
});

describe("a container that is paused", () => {
  sandboxTest("holds its calls up and loses none of them", async ({ open }) => {
    const sandbox = await open();
    const script = "for i in $(seq 40); do echo $i; sleep 0.02; done";
    const running = sandbox.exec(["bash", "-c", script]);
    await sleep(200);
    await ask(sandbox, "pause");
    const waiting = sandbox.exec(["echo", "waited"]);
    let isOver = false;
    void waiting.then(() => {
      isOver = true;
    });
    await sleep(700);
    expect(isOver).toBe(false);
    await ask(sandbox, "unpause");
    expect((await waiting).stdout).toBe("waited\n");
    expect((await running).stdout).toBe(Array.from({ length: 40 }, (_, i) => `${i + 1}\n`).join(""));
  });

  sandboxTest("and whose stream broke meanwhile is found again", async ({ open }) => {
    const sandbox = await open();
    const running = sandbox.exec(["sh", "-c", "sleep 0.3; echo through"]);
    await ask(sandbox, "pause");
    sandbox.link.breakStream();
    await sleep(700);
    await ask(sandbox, "unpause");
    expect((await running).stdout).toBe("through\n");
  });

  sandboxTest("can be closed", async ({ open }) => {
    const sandbox = await open();
    await ask(sandbox, "pause");
    await sandbox.close();
  });
});

describe("a limit that is reached", () => {
  sandboxTest(
    "scratch space: the writer is told, the session lives, and space can be freed",
    async ({ open, directory }) => {
      const policyFile = await changedPolicy(directory, { sizeMb: 16, maxInodes: 500 });
      const sandbox = await open({ policyFile });
      const fill = "head -c 100000000 /dev/zero > /tmp/fill || echo failed";
      const filled = await sandbox.exec(["sh", "-c", fill]);
      expect(filled.stdout).toBe("failed\n");
      expect(filled.stderr).toMatch(/No space left/);
      expect((await sandbox.exec(["sh", "-c", "echo fine; ls -s /tmp"])).stdout).toContain("fine\n");
      await expect(sandbox.files.write("/tmp/more", Buffer.alloc(100_000))).rejects.toMatchObject({
        code: "file.failed",
        cause: { code: "ENOSPC" },
      });
      await sandbox.files.remove("/tmp/fill");
      await sandbox.files.write("/tmp/more", Buffer.alloc(100_000));
    },
  );

  sandboxTest.skipIf(differs("limits.inodes"))(
    titled("limits.inodes", "files in scratch space: no more than so many"),
    async ({ open, directory }) => {
      const sandbox = await open({ policyFile: await changedPolicy(directory, { maxInodes: 500 }) });
      const script = "for i in $(seq 600); do : > /tmp/$i || break; done 2>/dev/null; ls /tmp | wc -l";
      expect(Number((await sandbox.exec(["bash", "-c", script])).stdout)).toBeLessThan(500);
      expect((await sandbox.exec(["echo", "fine"])).stdout).toBe("fine\n");
    },
  );

  sandboxTest.skipIf(differs("limits.pids"))(
    titled("limits.pids", "processes: a command that finds no place is a result, and the session recovers"),
    async ({ open, directory }) => {
      const sandbox = await open({ policyFile: await changedPolicy(directory, { pids: 64 }) });
      const full = await sandbox.spawn(["bash", "-c", "while :; do sleep 300 & done 2>/dev/null"]);
      await expect.poll(async () => (await sandbox.exec(["true"])).exitCode, { interval: 20 }).toBe(126);
      const refused = await sandbox.exec(["true"]);
      expect(refused.exitCode).toBe(126);
      expect(refused.stderr).toMatch(
        /^brig: no process can be started: \w+ \(a process could not .* its limit of 64 processes and threads\)/,
      );
      await full.kill();
      await expect.poll(() => runningCommands(sandbox)).toEqual([]);
      expect((await sandbox.exec(["sh", "-c", "echo fine; exit 3"])).exitCode).toBe(3);
    },
  );

  sandboxTest.skipIf(differs("limits.pids"))(
    titled(
      "limits.pids",
      "processes that outlive their command and leave no place: the next call ends them and runs",
    ),
    async ({ open, directory }) => {
      const sandbox = await open({ policyFile: await changedPolicy(directory, { pids: 64 }) });
      // It takes every process slot that becomes free, also that of the command that started it. That command ends once no slot is free.
      const bomb = `
import os, time
end, full = os.pipe()
if os.fork():
  os.read(end, 1)
  os._exit(0)
os.setsid()
while True:
  try:
    if os.fork() == 0:
      time.sleep(300)
      os._exit(0)
  except OSError:
    if full:
      os.write(full, b"x")
    full = None`;
      await sandbox.exec(["python3", "-c", bomb]);
      const spawned = await sandbox.spawn(["cat"]);
      spawned.stdin?.end("typed before it ran");
      expect(await text(spawned.stdout)).toBe("typed before it ran");
      expect(await text(spawned.stderr ?? spawned.stdout)).toMatch(
        /^brig: processes left running by earlier commands were ended/,
      );
      expect(await spawned.exit).toMatchObject({ exitCode: 0, startFailure: null });
      const next = await sandbox.exec(["sh", "-c", "echo fine; exit 3"]);
      expect(next).toMatchObject({ exitCode: 3, output: "fine\n" });
      await sandbox.exec(["python3", "-c", bomb]);
      expect(await sandbox.exec(["sh", "-c", "cat; exit 4"], { stdin: "given before it ran" })).toMatchObject(
        {
          exitCode: 4,
          stdout: "given before it ran",
          stderr: expect.stringMatching(/^brig: processes left running by earlier commands were ended/),
        },
      );
      await expect.poll(() => runningCommands(sandbox)).toEqual([]);
    },
  );

  sandboxTest("open files: commands are held to it, and the runner goes on", async ({ open, directory }) => {
    const sandbox = await open({ policyFile: await changedPolicy(directory, { openFiles: 64 }) });
    const script =
      "import os\nfds = []\ntry:\n  while True: fds.append(os.dup(0))\nexcept OSError as e: print(e.errno)";
    expect((await sandbox.exec(["python3", "-c", script])).stdout).toBe("24\n");
    const many = await Promise.all(
      Array.from({ length: 60 }, (_, i) => sandbox.exec(["sh", "-c", `sleep 0.2; exit ${i}`])),
    );
    // Each gets its own code, or is refused for want of descriptors: nothing else.
    for (const [i, { exitCode, stderr }] of many.entries())
      if (exitCode !== i) expect([exitCode, stderr]).toEqual([126, expect.stringMatching(/^brig: no /)]);
    expect((await sandbox.exec(["echo", "fine"])).stdout).toBe("fine\n");
  });
});

describe("an engine that is stopped", () => {
  const stopped = titled("trouble.inner-engine", "during a call: the call ends with what happened");
  sandboxTest.skipIf(differs("trouble.inner-engine"))(stopped, async () => {
    await using harmed = await harmedEngine();
    // The toolbox alone is image enough.
    await using sandbox = await openBreakable({
      engine: harmed.engine,
      image: harmed.images.toolbox,
      workspaceKind: "none",
      leaseSeconds: 3,
    });
    expect((await sandbox.exec(["/.brig/rg", "--version"])).stdout).toContain("ripgrep");
    const spawned = await sandbox.spawn(["/.brig/rg", "never"]);
    const running = expect(spawned.exit).rejects.toMatchObject({ code: "sandbox.gone", reason: "engine" });
    await harmed.stop();
    await running;
    await expect(sandbox.exec(["/.brig/rg"])).rejects.toMatchObject({
      code: "sandbox.gone",
      reason: "engine",
    });
  });
});
