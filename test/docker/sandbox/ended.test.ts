import { writeFile } from "node:fs/promises";
import { userInfo } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect } from "vitest";
import type { Engine } from "../../../src/sandbox/docker/engine-types.js";
import { testEngine } from "../../support/engine.js";
import type { BreakableSandbox } from "../../support/open-sandbox.js";
import { changedPolicy } from "../../support/policies.js";
import { differs, testRuntime, titled } from "../../support/runtime-differences.js";
import { sandboxTest } from "../../support/sandbox.js";

const small = { memoryMb: 160, sizeMb: 16, shmMb: 8 };
const hog = ["python3", "-c", "x = bytearray(400_000_000); x[::4096] = b'x' * len(x[::4096])"];

/** Only root on the engine's own machine can do something to the first process of a container, and gVisor has another. */
const isOutside = userInfo().uid !== 0 || testRuntime !== undefined;

async function hostPid({ engine, containerId }: BreakableSandbox): Promise<number> {
  const state = await engine.inspectContainer(containerId);
  return state?.pid ?? Number.NaN;
}

const ending = (sandbox: BreakableSandbox) => sandbox.exec(["sleep", "300"]).catch((error: unknown) => error);

describe("the reason why a sandbox has ended", () => {
  sandboxTest.skipIf(isOutside || differs("ended.oom"))(
    titled(
      "ended.oom",
      "is a want of memory if the kernel killed its first process for that [needs root, and the engine's own runtime]",
    ),
    async ({ open, directory }) => {
      const sandbox = await open({ policyFile: await changedPolicy(directory, small) });
      await writeFile(`/proc/${await hostPid(sandbox)}/oom_score_adj`, "1000");
      // Of two that share the memory each is smaller than what the first process counts for.
      const two = ["sh", "-c", `"$@" & "$@" & wait`, "sh", ...hog];
      expect(await sandbox.exec(two).catch((error: unknown) => error)).toMatchObject({
        code: "sandbox.gone",
        reason: "oom",
        message: "the sandbox ran out of memory and its container was killed",
      });
    },
  );

  sandboxTest("is not a want of memory if that killed something else before", async ({ open, directory }) => {
    const sandbox = await open({ policyFile: await changedPolicy(directory, small) });
    expect(await sandbox.exec(hog)).toMatchObject({ outOfMemory: true });
    const ended = ending(sandbox);
    await sandbox.engine.removeContainer(sandbox.containerId);
    expect(await ended).toMatchObject({
      reason: "killed",
      message: differs("ended.removed")
        ? expect.stringContaining("the sandbox's container was")
        : "the sandbox's container was killed or removed from outside",
    });
  });

  sandboxTest.skipIf(isOutside)(
    "tells a kill that the engine was not asked for [needs root, and the engine's own runtime]",
    async ({ open }) => {
      const sandbox = await open();
      const ended = ending(sandbox);
      process.kill(await hostPid(sandbox), "SIGKILL");
      expect(await ended).toMatchObject({
        code: "sandbox.gone",
        reason: "killed",
        message: "the sandbox's container was killed by SIGKILL, for which nobody has asked the engine",
      });
    },
  );

  sandboxTest("is the lease only if the runner ended because of it", async ({ open }) => {
    const engine = await testEngine();
    let isCut = false;
    const openExec: Engine["openExec"] = (...args) =>
      isCut ? Promise.reject(new Error("no stream")) : engine.openExec(...args);
    const cut = Object.assign(Object.create(engine) as Engine, { openExec });
    const [left, killed] = [
      await open({ engine: cut, leaseSeconds: 1 }),
      await open({ engine: cut, leaseSeconds: 60 }),
    ];
    isCut = true;
    const ends = Promise.all([ending(left), ending(killed)]);
    for (const one of [left, killed]) one.link.breakStream();
    await sleep(200);
    await engine.removeContainer(killed.containerId);
    const [ofLeft, ofKilled] = await ends;
    expect(ofLeft).toMatchObject({ code: "sandbox.gone", reason: "lease" });
    expect(ofKilled).toMatchObject({ code: "sandbox.gone", reason: "killed" });
  });

  sandboxTest("is the engine if it remembers nothing of the end", async ({ open }) => {
    const engine = await testEngine();
    const forgetful = Object.assign(Object.create(engine) as Engine, { containerEvents: async () => [] });
    // For as long as the lease the host tries to reach the container again.
    const sandbox = await open({ engine: forgetful, leaseSeconds: 2 });
    const ended = ending(sandbox);
    await engine.removeContainer(sandbox.containerId);
    expect(await ended).toMatchObject({ code: "sandbox.gone", reason: "engine" });
  });
});
