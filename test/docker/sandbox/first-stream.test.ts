import { text } from "node:stream/consumers";
import { describe, expect } from "vitest";
import { BrigError } from "../../../src/errors.js";
import type { Engine } from "../../../src/sandbox/docker/engine-types.js";
import { call, testEngine } from "../../support/engine.js";
import { sandboxTest } from "../../support/sandbox.js";

/** What the engine was asked to run in a container beside its own program. */
async function execsIn(containerId: string): Promise<string[]> {
  const { endpoint } = await testEngine();
  const path = `/containers/${containerId}/json`;
  const reply = await text(await call(new URL(endpoint).pathname, { method: "GET", path }));
  return (JSON.parse(reply) as { ExecIDs: string[] | null }).ExecIDs ?? [];
}

async function engineThatAttaches(attach: Engine["attachContainer"]): Promise<Engine> {
  return Object.assign(Object.create(await testEngine()) as Engine, { attachContainer: attach });
}

describe("the first stream to the runner", () => {
  sandboxTest("is the container's own, and costs no exec", async ({ sandbox }) => {
    expect((await sandbox.exec(["echo", "here"])).stdout).toBe("here\n");
    expect(await execsIn(sandbox.containerId)).toEqual([]);
  });

  sandboxTest("is replaced by that of an exec when it breaks", async ({ sandbox }) => {
    const long = sandbox.exec(["sh", "-c", "echo one; sleep 2; echo two"]);
    sandbox.link.breakStream();
    expect((await long).stdout).toBe("one\ntwo\n");
    expect(await execsIn(sandbox.containerId)).toHaveLength(1);
  });

  sandboxTest("may be cut before anything was said on it", async ({ open }) => {
    const engine = await engineThatAttaches(async (id) => {
      const attached = await (await testEngine()).attachContainer(id);
      attached.stream.destroy();
      return attached;
    });
    const sandbox = await open({ engine });
    expect((await sandbox.exec(["echo", "here"])).stdout).toBe("here\n");
  });

  sandboxTest("may break after the start was given up for another reason", async ({ open }) => {
    const real = await testEngine();
    const refusal = new BrigError("no answer", { code: "engine.failed" });
    let attaching: ReturnType<Engine["attachContainer"]> | undefined;
    const engine: Engine = Object.assign(Object.create(real) as Engine, {
      inspectCreated: () => Promise.reject(refusal),
      attachContainer: (id: string) => {
        attaching = new Promise((resolve) => setImmediate(resolve)).then(() => real.attachContainer(id));
        return attaching;
      },
      removeContainer: async (...args: Parameters<Engine["removeContainer"]>) => {
        await attaching;
        await real.removeContainer(...args);
      },
    });
    await expect(open({ engine })).rejects.toBe(refusal);
    const attached = await attaching;
    await new Promise((resolve) => setImmediate(resolve));
    // An error that nobody listens for would end the process.
    expect(() => attached?.stream.emit("error", new Error("cut"))).not.toThrow();
    attached?.stream.destroy();
  });

  sandboxTest("is nothing that a command could read from or write to", async ({ sandbox }) => {
    const { stdout } = await sandbox.exec([
      "sh",
      "-c",
      "readlink /proc/self/fd/0 /proc/self/fd/1; ls /proc/self/fd | wc -w",
    ]);
    // Its own three, and that of the listing.
    expect(stdout).toMatch(/^\/dev\/null\n(?:pipe|socket):\[\d+\]\n4\n$/);
  });
});
