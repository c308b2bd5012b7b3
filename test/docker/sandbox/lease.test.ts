import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { describe, expect, type TestContext } from "vitest";
import type { Engine } from "../../../src/sandbox/docker/engine-types.js";
import { promised } from "../../guarantees.js";
import { testEngine } from "../../support/engine.js";
import { openBreakable } from "../../support/open-sandbox.js";
import { testRuntime } from "../../support/runtime-differences.js";
import { sandboxTest } from "../../support/sandbox.js";

const holder = fileURLToPath(new URL("../../fixtures/hold-sandbox.ts", import.meta.url));

interface Host {
  process: ChildProcess;
  containerId: string;
}

/** A process of its own that holds a sandbox with a lease of two seconds, until the end of the test at most. */
async function startHost(
  { directory, onTestFinished }: Pick<TestContext, "onTestFinished"> & { directory: string },
  ...commands: string[]
): Promise<Host> {
  const child = spawn(process.execPath, ["--import", "tsx", holder, "2", directory, ...commands], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const [line] = await once(child.stdout!, "data");
  return { process: child, containerId: String(line).trim() };
}

/** Tests that run at the same time have to poll with the `expect` of their own. */
async function requireContainerGone(
  engine: Engine,
  { containerId, expect }: Pick<Host, "containerId"> & Pick<TestContext, "expect">,
): Promise<void> {
  await expect.poll(() => engine.inspectContainer(containerId), { interval: 100 }).toBeNull();
}

// All of them wait for leases most of the time, each for its own.
describe.concurrent("the container of a host process that is no more", () => {
  sandboxTest.for(["SIGKILL", "SIGTERM"] as const)(
    promised("kept.lease", "ends with its lease after %s"),
    async (signal, { directory, onTestFinished, expect }) => {
      const engine = await testEngine();
      const host = await startHost({ directory, onTestFinished });
      expect(await engine.inspectContainer(host.containerId)).toMatchObject({ running: true });
      host.process.kill(signal);
      await requireContainerGone(engine, { ...host, expect });
    },
  );

  sandboxTest("takes every background process with it", async ({ directory, onTestFinished, expect }) => {
    const engine = await testEngine();
    const beat = join(directory, "beat");
    const host = await startHost(
      { directory, onTestFinished },
      `setsid sh -c 'trap "" TERM HUP; while :; do date +%s%N > ${beat}; sleep 0.05; done' &`,
      "sleep 1000",
    );
    const beats = () => readFile(beat, "utf8").catch(() => "");
    await expect.poll(beats).not.toBe("");
    const first = await beats();
    await expect.poll(beats).not.toBe(first);
    host.process.kill("SIGKILL");
    await requireContainerGone(engine, { ...host, expect });
    const last = await readFile(beat, "utf8");
    await sleep(300);
    expect(await readFile(beat, "utf8")).toBe(last);
  });
});

describe.concurrent("a lease", () => {
  sandboxTest("does not end while the host is there, however idle", async ({ open }) => {
    const sandbox = await open({ leaseSeconds: 1 });
    await sleep(3000);
    expect((await sandbox.exec(["echo", "here"])).stdout).toBe("here\n");
  });

  sandboxTest("begins anew with each broken stream", async ({ open }) => {
    const leaseSeconds = 4;
    const sandbox = await open({ leaseSeconds });
    const until = performance.now() + leaseSeconds * 1500;
    while (performance.now() < until) {
      sandbox.link.breakStream();
      expect((await sandbox.exec(["echo", "here"])).stdout).toBe("here\n");
      await sleep(300);
    }
  });

  sandboxTest("waits longer for its first host, whom a busy engine may keep waiting", async ({ open }) => {
    const engine = await testEngine();
    const startContainer: Engine["startContainer"] = async (id) => {
      await engine.startContainer(id);
      await sleep(2500);
    };
    const slow = Object.assign(Object.create(engine) as Engine, { startContainer });
    const sandbox = await open({ engine: slow, leaseSeconds: 1 });
    expect((await sandbox.exec(["echo", "here"])).stdout).toBe("here\n");
  });

  sandboxTest.for([0, -1, Number.NaN, 10 ** 9])(
    "of %s seconds is refused",
    async (leaseSeconds, { open }) => {
      await expect(open({ leaseSeconds })).rejects.toMatchObject({ code: "usage.invalid" });
    },
  );

  sandboxTest(
    "is not kept by a container that was asked to be kept",
    async ({ directory, onTestFinished }) => {
      const sandbox = await openBreakable({
        workspace: directory,
        runtime: testRuntime,
        keep: true,
        leaseSeconds: 1,
      });
      onTestFinished(() => sandbox.engine.removeContainer(sandbox.containerId));
      await sandbox.close();
      await sleep(2500);
      expect(await sandbox.engine.inspectContainer(sandbox.containerId)).toMatchObject({ running: true });
    },
  );
});
