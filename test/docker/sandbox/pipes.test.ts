import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect } from "vitest";
import { runningCommands } from "../../support/processes.js";
import { sandboxTest } from "../../support/sandbox.js";

/** What arrives through `onLateOutput`, by the number of the call. */
function lateOutput() {
  const byCall = new Map<number, string>();
  return {
    byCall,
    onLateOutput: (data: Buffer, call: number) => {
      byCall.set(call, (byCall.get(call) ?? "") + data.toString());
    },
    get all(): string {
      return [...byCall.values()].join("");
    },
  };
}

describe("a pipe that a background process holds open", () => {
  sandboxTest("does not hold up the call, which has its output and its code", async ({ sandbox }) => {
    const result = await sandbox.exec(["sh", "-c", "sleep 300 & echo out; echo err >&2; exit 3"], {
      timeoutMs: 100_000,
    });
    expect(result).toMatchObject({ exitCode: 3, stdout: "out\n", stderr: "err\n", timedOut: false });
    await expect.poll(() => runningCommands(sandbox)).toEqual(["sleep 300"]);
    await sandbox.exec(["pkill", "sleep"]);
  });

  sandboxTest("costs nothing of what was printed just before, however much", async ({ sandbox }) => {
    const script = "sleep 300 & seq 300000";
    const { stdout } = await sandbox.exec(["sh", "-c", script]);
    expect(stdout.length).toBe(1_988_895);
    await sandbox.exec(["pkill", "sleep"]);
  });

  sandboxTest("may still carry output: it arrives under the number of its call", async ({ open }) => {
    const late = lateOutput();
    const sandbox = await open({ onLateOutput: late.onLateOutput });
    const script =
      "(until test -e /tmp/go; do sleep 0.02; done; echo late out; echo late err >&2) & echo in time";
    const result = await sandbox.exec(["sh", "-c", script]);
    expect(result.output).toBe("in time\n");
    await sandbox.files.write("/tmp/go", "");
    expect((await sandbox.exec(["echo", "another"])).output).toBe("another\n");
    await expect.poll(() => late.all).toContain("late err\n");
    expect(late.byCall.size).toBe(1);
    expect(late.all.split("\n").sort()).toEqual(["", "late err", "late out"]);
  });

  sandboxTest("never blocks the process that writes to it, however much it writes", async ({ open }) => {
    const late = lateOutput();
    const sandbox = await open({ onLateOutput: late.onLateOutput });
    const script =
      "(until test -e /tmp/go; do sleep 0.02; done; head -c 20000000 /dev/zero; touch /tmp/wrote-it-all; sleep 300) &";
    await sandbox.exec(["sh", "-c", script]);
    await sandbox.files.write("/tmp/go", "");
    await expect
      .poll(() => sandbox.exec(["test", "-e", "/tmp/wrote-it-all"]).then(({ exitCode }) => exitCode))
      .toBe(0);
    expect(late.all.length).toBeLessThanOrEqual(1024 * 1024);
    expect((await sandbox.exec(["echo", "fine"])).stdout).toBe("fine\n");
  });

  sandboxTest("lives until the sandbox is closed, and is then gone", async ({ open, directory }) => {
    const sandbox = await open({ workspace: directory });
    await sandbox.exec(["sh", "-c", "setsid sh -c 'while :; do date +%N > beat; sleep 0.02; done' &"]);
    const beat = () => readFile(`${directory}/beat`, "utf8").catch(() => "");
    await expect.poll(beat).not.toBe("");
    const first = await beat();
    await expect.poll(beat).not.toBe(first);
    await sandbox.close();
    const last = await readFile(`${directory}/beat`);
    await sleep(200);
    expect(await readFile(`${directory}/beat`)).toEqual(last);
  });

  sandboxTest("can be ended by a kill of its process, though that one is over", async ({ sandbox }) => {
    const spawned = await sandbox.spawn(["sh", "-c", "setsid sleep 301 & echo started; exit 4"]);
    expect(await spawned.exit).toMatchObject({ exitCode: 4 });
    await expect.poll(() => runningCommands(sandbox)).toEqual(["sleep 301"]);
    await spawned.kill();
    await expect.poll(() => runningCommands(sandbox)).toEqual([]);
  });

  sandboxTest("closes the streams of a spawned process with its exit", async ({ sandbox }) => {
    const spawned = await sandbox.spawn(["sh", "-c", "sleep 300 & echo out"], { stdin: "closed" });
    let text = "";
    for await (const chunk of spawned.stdout) text += String(chunk);
    expect(text).toBe("out\n");
    expect((await spawned.exit).exitCode).toBe(0);
    await sandbox.exec(["pkill", "sleep"]);
  });
});
