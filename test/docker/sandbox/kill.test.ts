import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, type TestContext } from "vitest";
import type { Sandbox } from "../../../src/sandbox/sandbox.js";
import { promised } from "../../guarantees.js";
import { forEachHostUser } from "../../support/each-host-user.js";
import { changedPolicy } from "../../support/policies.js";
import { runningCommands, zombieCount } from "../../support/processes.js";
import { differs, titled } from "../../support/runtime-differences.js";
import { execUntilReady, program, sandboxTest } from "../../support/sandbox.js";

const escapes = [
  "setsid",
  "double-fork",
  "ignores-term",
  "stopped",
  "bare",
  "nested",
  "respawning",
  "writes-late",
  "headless",
];

/** The session is as good as before. Tests that run at the same time have to poll with the `expect` of their own. */
async function requireHealthy(sandbox: Sandbox, own: TestContext["expect"] = expect): Promise<void> {
  // What kills the bridge too makes the host open another, and the engine's own process is seen for a moment.
  const commands = async () => (await runningCommands(sandbox)).filter((name) => name !== "runc init");
  expect(await commands()).toEqual([]);
  await own.poll(() => zombieCount(sandbox)).toBe(0);
  const result = await sandbox.exec(["sh", "-c", "echo out; echo err >&2; exit 3"]);
  expect(result).toMatchObject({ exitCode: 3, stdout: "out\n", stderr: "err\n" });
}

describe("a timeout ends the whole tree", () => {
  forEachHostUser((userTest) => {
    userTest.for(escapes)(promised("kept.kill", "%s"), async (kind, { sandbox }) => {
      const result = await execUntilReady(sandbox, program("escapes.sh", kind), 400);
      expect(result).toMatchObject({ timedOut: true, exitCode: 124, stdout: "ready\n" });
      await requireHealthy(sandbox);
    });

    userTest.skipIf(differs("limits.pids"))(
      titled("limits.pids", "even of a fork bomb that has used up the process limit"),
      async ({ open, directory }) => {
        const sandbox = await open({ policyFile: await changedPolicy(directory, { pids: 96 }) });
        const result = await sandbox.exec(program("fork-bomb.sh"), { timeoutMs: 1500 });
        expect(result.timedOut).toBe(true);
        await requireHealthy(sandbox);
      },
    );
  });

  sandboxTest("a command that ends in time is not marked", async ({ sandbox }) => {
    const result = await sandbox.exec(["sleep", "0.05"], { timeoutMs: 30_000 });
    expect(result).toMatchObject({ timedOut: false, exitCode: 0, signal: null });
  });
});

// They wait most of the time, each in a sandbox of its own.
describe.concurrent("after a timeout", () => {
  sandboxTest("what it was about to write is never written", async ({ open }) => {
    const sandbox = await open();
    await execUntilReady(sandbox, program("escapes.sh", "writes-late"), 500);
    await sleep(5000);
    await expect(sandbox.files.stat("/tmp/too-late")).rejects.toMatchObject({ code: "file.not-found" });
  });

  sandboxTest("and leaves other commands alone", async ({ open }) => {
    const sandbox = await open();
    const other = sandbox.exec(["sh", "-c", "sleep 1.5; echo survived"]);
    await sandbox.exec(program("escapes.sh", "respawning"), { timeoutMs: 300 });
    expect((await other).stdout).toBe("survived\n");
  });

  sandboxTest("a process that ends on SIGTERM may clean up first", async ({ open, expect }) => {
    const sandbox = await open();
    const script = "trap 'echo cleaned; exit 7' TERM; echo ready; sleep 300 & wait";
    const result = await execUntilReady(sandbox, ["bash", "-c", script], 1000);
    expect(result).toMatchObject({ timedOut: true, exitCode: 124, stdout: "ready\ncleaned\n" });
    await requireHealthy(sandbox, expect);
  });
});

describe("an abort ends the whole tree", () => {
  sandboxTest.for(escapes)("%s", async (kind, { sandbox }) => {
    const controller = new AbortController();
    const reason = new Error("changed my mind");
    const call = sandbox.exec(program("escapes.sh", kind), {
      signal: controller.signal,
      onStdout: () => controller.abort(reason),
    });
    await expect(call).rejects.toBe(reason);
    await requireHealthy(sandbox);
  });

  sandboxTest("a signal that was aborted before starts nothing", async ({ sandbox }) => {
    const reason = new Error("too late");
    const call = sandbox.exec(["touch", "/tmp/started"], { signal: AbortSignal.abort(reason) });
    await expect(call).rejects.toBe(reason);
    await expect(sandbox.files.stat("/tmp/started")).rejects.toMatchObject({ code: "file.not-found" });
  });

  sandboxTest("kill() of a spawned process resolves when nothing is left", async ({ sandbox }) => {
    const spawned = await sandbox.spawn(program("escapes.sh", "nested"));
    await new Promise((resolve) => spawned.stdout.once("data", resolve));
    await spawned.kill();
    expect(await spawned.exit).toMatchObject({ exitCode: 143, signal: "SIGTERM" });
    await requireHealthy(sandbox);
  });

  sandboxTest("a signal sent before the process exists reaches it when it does", async ({ sandbox }) => {
    for (let i = 0; i < 20; i++) {
      const spawned = await sandbox.spawn(["sleep", "300"]);
      await spawned.kill("SIGINT");
      expect(await spawned.exit).toMatchObject({ exitCode: 130, signal: "SIGINT" });
    }
  });

  sandboxTest("kill(signal) reaches the process group and nothing else", async ({ sandbox }) => {
    const spawned = await sandbox.spawn([
      "bash",
      "-c",
      "trap 'echo usr1; exit 9' USR1; echo ready; while :; do sleep 0.02; done",
    ]);
    const other = sandbox.exec(["sh", "-c", "sleep 0.5; echo unharmed"]);
    let text = "";
    spawned.stdout.on("data", (chunk: Buffer) => {
      text += chunk.toString();
      if (text === "ready\n") void spawned.kill("SIGUSR1");
    });
    expect(await spawned.exit).toMatchObject({ exitCode: 9, signal: null });
    expect(text).toBe("ready\nusr1\n");
    expect((await other).stdout).toBe("unharmed\n");
  });
});

describe("a command that nothing may outlive", () => {
  const leaves: [how: string, script: string][] = [
    ["in the background", "sleep 301 >/dev/null 2>&1 &"],
    ["in a session of its own", "setsid sleep 301 >/dev/null 2>&1 &"],
    ["as a daemon, forked twice", "(setsid sh -c 'sleep 301 & sleep 302' >/dev/null 2>&1 &) &"],
    ["with its pipe held open", "sleep 301 & echo started"],
    ["deaf to SIGTERM", "setsid sh -c \"trap '' TERM; sleep 301; sleep 302\" >/dev/null 2>&1 & sleep 0.2"],
  ];
  const run = async (sandbox: Sandbox, script: string, endsTree: boolean) => {
    const spawned = await sandbox.spawn(["bash", "-c", script], {
      endsTree,
      mergeOutput: true,
      stdin: "closed",
    });
    const [stdout, exit] = await Promise.all([text(spawned.stdout), spawned.exit]);
    return { stdout, exit };
  };

  sandboxTest.for(leaves)("leaves nothing %s", async ([, script], { sandbox }) => {
    await run(sandbox, script, false);
    await expect.poll(() => runningCommands(sandbox)).toContain("sleep 301");
    await sandbox.exec(["pkill", "-KILL", "-f", "sleep 30[12]"]);
    await expect.poll(() => runningCommands(sandbox)).toEqual([]);
    expect((await run(sandbox, script, true)).exit).toMatchObject({
      exitCode: 0,
      signal: null,
      timedOut: false,
      treeEnded: true,
    });
    await requireHealthy(sandbox);
  });

  sandboxTest.for(leaves)("leaves nothing %s, run to its end", async ([, script], { sandbox }) => {
    const result = await sandbox.exec(["bash", "-c", script], { endsTree: true });
    expect(result).toMatchObject({ exitCode: 0, signal: null, timedOut: false, treeEnded: true });
    await requireHealthy(sandbox);
  });

  sandboxTest("gives all that its last processes print, if they soon end", async ({ sandbox }) => {
    const { stdout, exit } = await run(sandbox, "echo last words > >(sleep 0.05; cat)", true);
    expect(stdout).toBe("last words\n");
    expect(exit).toMatchObject({ exitCode: 0, treeEnded: false });
  });

  sandboxTest("does not end what others have started", async ({ sandbox }) => {
    const other = await sandbox.spawn(["bash", "-c", "setsid sleep 303 & wait; echo no"], { endsTree: true });
    await expect.poll(() => runningCommands(sandbox)).toContain("sleep 303");
    await run(sandbox, "setsid sleep 301 & setsid sleep 302 &", true);
    expect((await runningCommands(sandbox)).filter((command) => command.startsWith("sleep"))).toEqual([
      "sleep 303",
    ]);
    await other.kill();
    await requireHealthy(sandbox);
  });

  sandboxTest("takes its leftovers along though it has killed its supervisor", async ({ sandbox }) => {
    const { exit } = await run(sandbox, "setsid sleep 301 & kill -STOP $PPID; kill -9 $PPID", true);
    expect(exit).toMatchObject({ signal: "SIGKILL" });
    await requireHealthy(sandbox);
  });
});

describe("a command that turns on its own keepers", () => {
  forEachHostUser((userTest) => {
    userTest("its supervisor killed: it goes too, with what it started", async ({ sandbox }) => {
      const result = await sandbox.exec(["bash", "-c", "setsid sleep 301 & kill -9 $PPID; sleep 302"]);
      expect(result).toMatchObject({ exitCode: 137, signal: "SIGKILL", timedOut: false });
      await requireHealthy(sandbox);
    });

    userTest("everything killed: the call ends and the session goes on", async ({ sandbox }) => {
      const result = await sandbox.exec(["bash", "-c", "echo before; kill -9 -1; sleep 302"]);
      expect(result).toMatchObject({ exitCode: 137, signal: "SIGKILL", stdout: "before\n" });
      await requireHealthy(sandbox);
    });

    userTest("everything terminated: the session goes on", async ({ sandbox }) => {
      await sandbox.exec(["bash", "-c", "kill -TERM -1; kill -HUP -1; kill -INT -1; true"]);
      await requireHealthy(sandbox);
    });

    userTest("everything stopped: the call still ends", async ({ sandbox }) => {
      const result = await sandbox.exec(["bash", "-c", "kill -STOP -1; echo stopped; exit 5"]);
      expect(result).toMatchObject({ exitCode: 5, stdout: "stopped\n" });
      await requireHealthy(sandbox);
    });

    userTest("everything stopped: a timeout still holds", async ({ sandbox }) => {
      const result = await sandbox.exec(["bash", "-c", "kill -STOP -1; sleep 301"], { timeoutMs: 400 });
      expect(result).toMatchObject({ exitCode: 124, timedOut: true });
      await requireHealthy(sandbox);
    });

    userTest("its supervisor stopped: the call still ends", async ({ sandbox }) => {
      const result = await sandbox.exec(["bash", "-c", "kill -STOP $PPID; exit 6"]);
      expect(result.exitCode).toBe(6);
      await requireHealthy(sandbox);
    });

    userTest("no signal that could be handled reaches PID 1", async ({ sandbox }) => {
      const script =
        "for n in $(seq 1 64); do case $n in 9|19) ;; *) kill -$n 1 ;; esac; done 2>/dev/null; echo done";
      expect((await sandbox.exec(["bash", "-c", script])).stdout).toBe("done\n");
      await requireHealthy(sandbox);
    });

    userTest.skipIf(differs("runner.unkillable"))(
      titled("runner.unkillable", "SIGKILL and SIGSTOP do not reach PID 1 either"),
      async ({ sandbox }) => {
        const result = await sandbox.exec(["bash", "-c", "kill -9 1; kill -STOP 1; echo done"]);
        expect(result.stdout).toBe("done\n");
        await requireHealthy(sandbox);
      },
    );

    userTest.skipIf(differs("runner.limits"))(
      titled("runner.limits", "no limit of PID 1 can be lowered, the command's own can"),
      async ({ sandbox }) => {
        const script = `
import errno, resource
for name in ("NOFILE", "AS", "CPU", "NPROC"):
    try: resource.prlimit(1, getattr(resource, "RLIMIT_" + name), (1, 1))
    except OSError as error: print(errno.errorcode[error.errno])
resource.setrlimit(resource.RLIMIT_NOFILE, (50, 60))
print(resource.prlimit(0, resource.RLIMIT_NOFILE))`;
        const { stdout } = await sandbox.exec(["python3", "-c", script]);
        expect(stdout).toBe("EPERM\nEPERM\nEPERM\nEPERM\n(50, 60)\n");
        sandbox.link.breakStream();
        await requireHealthy(sandbox);
      },
    );

    userTest(
      "PID 1 killed from inside, where that is possible, ends the session cleanly",
      async ({ open }) => {
        const sandbox = await open();
        const call = sandbox.exec(["bash", "-c", "kill -9 1; sleep 0.5; echo done"]);
        if (differs("runner.unkillable"))
          await expect(call).rejects.toMatchObject({ code: "sandbox.gone", reason: "killed" });
        else expect((await call).stdout).toBe("done\n");
      },
    );

    userTest("idle workers killed again and again: no call is lost", async ({ sandbox }) => {
      const killer = sandbox.exec([
        "bash",
        "-c",
        "for i in $(seq 40); do for p in $(pgrep -P 1); do [ $p = $PPID ] || kill -9 $p; done; sleep 0.01; done; echo ended",
      ]);
      const results = [];
      for (let i = 0; i < 60; i++) results.push(await sandbox.exec(["sh", "-c", `echo ${i}; exit ${i}`]));
      expect((await killer).stdout).toBe("ended\n");
      // A call whose supervisor was killed says so; every other one is whole.
      for (const [i, { exitCode, signal, stdout }] of results.entries())
        if (signal === null) expect([exitCode, stdout]).toEqual([i, `${i}\n`]);
        else expect([exitCode, signal]).toEqual([137, "SIGKILL"]);
      await requireHealthy(sandbox);
    });
  });
});
