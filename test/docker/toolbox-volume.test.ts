import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { packTar } from "../../src/sandbox/docker/calls/tar.js";
import type { ContainerBody, Mount } from "../../src/sandbox/docker/engine-types.js";
import { ensureToolboxVolume, findToolbox, toolboxLabel } from "../../src/sandbox/images/toolbox-volume.js";
import { containerBody } from "../support/container-body.js";
import { type HarmedEngine, harmedEngine } from "../support/engine.js";

let harmed: HarmedEngine;
let tag: string;

beforeAll(async () => {
  harmed = await harmedEngine({ images: ["toolbox"] });
  tag = harmed.images.toolbox ?? "";
});
afterAll(async () => {
  await harmed[Symbol.asyncDispose]();
});
beforeEach(async () => {
  for (const { name } of await harmed.engine.listVolumes([toolboxLabel]))
    await harmed.engine.removeVolume(name);
});

function body(argv: string[], mount: Partial<Mount>): ContainerBody {
  return containerBody(tag, argv, {
    host: { Mounts: [{ Type: "volume", Target: "/.brig", ReadOnly: true, ...mount }] },
  });
}

async function exitCodeOf(argv: string[], volume: string): Promise<number> {
  const id = await harmed.engine.createContainer(
    body(argv, { Source: volume, VolumeOptions: { NoCopy: true } }),
  );
  await harmed.engine.startContainer(id);
  const exitCode = await harmed.engine.waitContainer(id);
  await harmed.engine.removeContainer(id);
  return exitCode;
}

describe("ensureToolboxVolume", () => {
  it("fills a volume whose programs run from a read-only mount, and leaves no container", async () => {
    expect(await findToolbox(harmed.engine, tag)).toBeNull();
    const volume = await ensureToolboxVolume(harmed.engine, tag);
    expect(volume).toBe(`brig-toolbox-${tag.split(":")[1]}`);
    expect(await findToolbox(harmed.engine, tag)).not.toBeNull();
    expect(await exitCodeOf(["/.brig/runner", "version"], volume)).toBe(0);
    expect(await exitCodeOf(["/.brig/rg", "--version"], volume)).toBe(0);
    expect(await harmed.engine.listContainers([toolboxLabel])).toEqual([]);
  });

  it("gives the same volume to many who ask at once", async () => {
    const names = await Promise.all([1, 2, 3, 4].map(() => ensureToolboxVolume(harmed.engine, tag)));
    expect(new Set(names).size).toBe(1);
    expect(await exitCodeOf(["/.brig/runner", "version"], names[0] ?? "")).toBe(0);
  });

  it("replaces a copy that broke off half-way", async () => {
    const name = `brig-toolbox-${tag.split(":")[1]}`;
    await harmed.engine.createVolume(name, { [toolboxLabel]: "half" });
    const writer = await harmed.engine.createContainer(
      body(["/x"], { Source: name, Target: "/half", ReadOnly: false, VolumeOptions: { NoCopy: true } }),
    );
    const half = packTar([{ path: "rg", mode: 0o555, content: Buffer.from("\x7fELF half of it") }]);
    await harmed.engine.putArchive(writer, "/half", half);
    await harmed.engine.removeContainer(writer);
    expect(await findToolbox(harmed.engine, tag)).toBeNull();

    expect(await ensureToolboxVolume(harmed.engine, tag)).toBe(name);
    expect(await exitCodeOf(["/.brig/rg", "--version"], name)).toBe(0);
    expect(await exitCodeOf(["/.brig/runner", "version"], name)).toBe(0);
  });
});
