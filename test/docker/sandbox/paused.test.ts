import { expect } from "vitest";
import { readEnvironment } from "../../../src/lib/env.js";
import { connectEngine } from "../../../src/sandbox/docker/connect.js";
import { pauseSandbox, unpauseSandbox } from "../../../src/sandbox/inside.js";
import { openBreakable } from "../../support/open-sandbox.js";
import { sandboxTest } from "../../support/sandbox.js";

sandboxTest(
  "a sandbox goes on although the engine takes it for one that runs at first",
  async ({ directory }) => {
    const engine = await connectEngine({ env: readEnvironment() });
    await using sandbox = await openBreakable({ workspace: directory, engine });
    await pauseSandbox(sandbox);
    const inspect = engine.inspectContainer.bind(engine);
    let asked = 0;
    engine.inspectContainer = async (...request) => {
      const found = await inspect(...request);
      return found && { ...found, paused: found.paused && ++asked > 3 };
    };
    await unpauseSandbox(sandbox);
    await expect.poll(() => inspect(sandbox.containerId)).toMatchObject({ running: true, paused: false });
    expect((await sandbox.exec(["echo", "on"])).stdout).toBe("on\n");
    // One that runs anyway.
    await unpauseSandbox(sandbox);
    expect((await sandbox.exec(["echo", "on"])).stdout).toBe("on\n");
  },
);

sandboxTest(
  "a sandbox is paused although the engine takes it for one that is, at first or for good",
  async ({ directory }) => {
    const engine = await connectEngine({ env: readEnvironment() });
    await using sandbox = await openBreakable({ workspace: directory, engine });
    const { containerId } = sandbox;
    await engine.pauseContainer(containerId);
    const pausing = pauseSandbox(sandbox);
    await engine.unpauseContainer(containerId);
    await pausing;
    await expect
      .poll(() => engine.inspectContainer(containerId))
      .toMatchObject({ running: true, paused: true });
    await pauseSandbox(sandbox);
    await expect
      .poll(() => engine.inspectContainer(containerId))
      .toMatchObject({ running: true, paused: true });
    await engine.unpauseContainer(containerId);
  },
);

sandboxTest("a sandbox that has ended is not paused", async ({ directory }) => {
  const engine = await connectEngine({ env: readEnvironment() });
  await using sandbox = await openBreakable({ workspace: directory, engine });
  await engine.removeContainer(sandbox.containerId);
  await expect(pauseSandbox(sandbox)).rejects.toMatchObject({ code: "engine.failed" });
  await unpauseSandbox(sandbox);
});
