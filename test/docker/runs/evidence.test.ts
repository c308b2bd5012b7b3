import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { explainFailure } from "../../../src/batch/runs/evidence.js";
import { BrigError } from "../../../src/errors.js";
import type { ContainerBody, Engine } from "../../../src/sandbox/docker/engine-types.js";
import { ensureImages } from "../../../src/sandbox/images/ensure.js";
import { containerBody } from "../../support/container-body.js";
import { harmedEngine, testEngine } from "../../support/engine.js";
import { testLabels } from "../../support/test-run.js";

let engine: Engine;
let base: string;
const made: string[] = [];
const stage = "agent";
const memoryLimitBytes = 64 * 1024 ** 2;
const gone = new BrigError("the container ended", { code: "sandbox.gone", reason: "killed" });

beforeAll(async () => {
  engine = await testEngine();
  ({ base } = await ensureImages(engine, { names: ["base"] }));
});
afterEach(async () => {
  for (const id of made.splice(0)) await engine.removeContainer(id);
});

async function start(argv: string[], host: Partial<ContainerBody["HostConfig"]> = {}): Promise<string> {
  const id = await engine.createContainer(containerBody(base, argv, { Labels: testLabels(), host }));
  made.push(id);
  await engine.startContainer(id);
  return id;
}

describe("why a container ended", () => {
  it("is its own memory limit, if it used more", async () => {
    const id = await start(["tail", "/dev/zero"], { Memory: memoryLimitBytes, MemorySwap: memoryLimitBytes });
    expect(await engine.waitContainer(id)).toBe(137);
    const cause = await explainFailure(engine, { error: gone, stage, containerId: id, memoryLimitBytes });
    expect(cause).toMatchObject({
      kind: "memory-limit",
      evidence: expect.arrayContaining(["container: exit code 137, killed for want of memory"]),
    });
  });

  it("is somebody outside, if it was killed or removed", async () => {
    const id = await start(["sleep", "1000"]);
    await engine.killContainer(id);
    await engine.waitContainer(id);
    const failed = { error: gone, stage, containerId: id, memoryLimitBytes: null } as const;
    expect(await explainFailure(engine, failed)).toMatchObject({
      kind: "infrastructure",
      class: "sandbox-gone",
      message: "the container was killed from outside",
      evidence: expect.arrayContaining(["sandbox.gone: the container ended", "container: exit code 137"]),
    });
    await engine.removeContainer(id);
    expect(await explainFailure(engine, failed)).toMatchObject({
      class: "sandbox-gone",
      message: "the container was removed from outside",
    });
  });

  it("is what runs in it, if nobody outside killed it since its last start", async () => {
    const id = await start(["sh", "-c", "test -e /again || { touch /again; sleep 1000; }; exit 137"]);
    await expect.poll(() => engine.statPath(id, "/again")).not.toBeNull();
    await engine.killContainer(id);
    await engine.waitContainer(id);
    await engine.startContainer(id);
    await engine.waitContainer(id);
    const failed = { error: gone, stage, containerId: id, memoryLimitBytes: null } as const;
    expect(await explainFailure(engine, failed)).toMatchObject({
      kind: "own-doing",
      message: "the container ended with exit code 137, and nobody outside had ended it",
    });
  });

  it("is the engine, if that is gone", async () => {
    await using harmed = await harmedEngine({ images: [] });
    await harmed.stop();
    const failed = { error: gone, stage, containerId: "none", memoryLimitBytes: null } as const;
    expect(await explainFailure(harmed.engine, failed)).toMatchObject({
      kind: "infrastructure",
      class: "engine-gone",
      evidence: expect.arrayContaining([expect.stringMatching(/^engine: cannot ask the container engine/)]),
    });
  });
});
