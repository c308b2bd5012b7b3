import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { packTar } from "../../src/sandbox/docker/calls/tar.js";
import type { Engine, Mount } from "../../src/sandbox/docker/engine-types.js";
import { type PrunedObject, pruneImages } from "../../src/sandbox/images/prune.js";
import { ensureToolboxVolume, toolboxLabel } from "../../src/sandbox/images/toolbox-volume.js";
import { containerBody } from "../support/container-body.js";
import { type HarmedEngine, harmedEngine } from "../support/engine.js";

const fileBytes = 100_000;
let harmed: HarmedEngine;
let engine: Engine;
/** Of this version. */
let toolboxTag: string;
let containers: string[];

beforeAll(async () => {
  harmed = await harmedEngine({ images: ["toolbox"] });
  engine = harmed.engine;
  toolboxTag = harmed.images.toolbox ?? "";
});
afterAll(() => harmed[Symbol.asyncDispose]());
beforeEach(async () => {
  for (const id of containers ?? []) await engine.removeContainer(id);
  containers = [];
  await pruneImages(engine, { isDryRun: false });
});

/** An image with a file of its own, as brig makes it but for what is given. */
async function build(
  tag: string,
  { label = "toolbox", from = "scratch" }: { label?: string | null; from?: string } = {},
) {
  const files = [
    {
      path: "Dockerfile",
      mode: 0o644,
      content: Buffer.from(`FROM ${from}\nCOPY file /${randomBytes(4).toString("hex")}\n`),
    },
    { path: "file", mode: 0o644, content: randomBytes(fileBytes) },
  ];
  const labels: Record<string, string> = label === null ? {} : { "brig.image": label };
  await engine.buildImage(packTar(files), { tag, labels });
}

/** A container that was never started. */
async function use(image: string, volume?: string): Promise<void> {
  const mounts: Mount[] =
    volume === undefined ? [] : [{ Type: "volume", Source: volume, Target: "/.brig", ReadOnly: true }];
  const id = await engine.createContainer(containerBody(image, ["/none"], { host: { Mounts: mounts } }));
  containers.push(id);
}

async function prune(isDryRun = false): Promise<Record<string, string>> {
  const { objects } = await pruneImages(engine, { isDryRun });
  return Object.fromEntries(objects.map((one) => [one.names.join(" "), fate(one)]));
}

const fate = ({ verdict, removed }: PrunedObject) => (removed ? "removed" : verdict);
const exists = async (ref: string) => (await engine.inspectImage(ref)) !== null;
const volumeExists = async (name: string) => (await engine.inspectVolume(name)) !== null;

describe("a prune of images", () => {
  it("removes those of another version, with all their names, and none of this version", async () => {
    await build("brig/toolbox:old");
    await build("brig/test-runner-asan:one", { label: "test-runner-asan" });
    await engine.tagImage("brig/test-runner-asan:one", "brig/test-runner-asan:two");
    expect(await prune()).toEqual({
      "brig/toolbox:old": "removed",
      "brig/test-runner-asan:one brig/test-runner-asan:two": "removed",
    });
    for (const ref of ["brig/toolbox:old", "brig/test-runner-asan:one", "brig/test-runner-asan:two"])
      expect(await exists(ref)).toBe(false);
    expect(await exists(toolboxTag)).toBe(true);
    expect(await prune()).toEqual({});
  });

  it("in a dry run says the same and what it would free, and removes nothing", async () => {
    await build("brig/toolbox:old");
    await use("brig/toolbox:old");
    await build("brig/toolbox:older");
    const report = await pruneImages(engine, { isDryRun: true });
    expect(report).toEqual({
      objects: expect.arrayContaining([
        { kind: "image", names: ["brig/toolbox:old"], bytes: fileBytes, verdict: "in-use", removed: false },
        { kind: "image", names: ["brig/toolbox:older"], bytes: fileBytes, verdict: "unused", removed: false },
      ]),
      bytes: fileBytes,
    });
    expect(report.objects).toHaveLength(2);
    expect(await exists("brig/toolbox:older")).toBe(true);
    const done = await pruneImages(engine, { isDryRun: false });
    expect(done.bytes).toBe(fileBytes);
    expect(await exists("brig/toolbox:older")).toBe(false);
  });

  it("leaves what a container uses, though that was never started", async () => {
    await build("brig/toolbox:old");
    await use("brig/toolbox:old");
    expect(await prune()).toEqual({ "brig/toolbox:old": "in-use" });
    expect(await exists("brig/toolbox:old")).toBe(true);
  });

  it("touches nothing that brig did not make, though it was built on an image of brig's", async () => {
    await build("brig/toolbox:old");
    await build("mine/agent:1", { label: null, from: "brig/toolbox:old" });
    await build("brig/toolbox:mine", { label: null });
    await build("mine/brig:1");
    expect((await engine.inspectImage("mine/agent:1"))?.labels).toEqual({ "brig.image": "toolbox" });
    expect(await prune()).toEqual({ "brig/toolbox:old": "refused" });
    for (const ref of ["brig/toolbox:old", "mine/agent:1", "brig/toolbox:mine", "mine/brig:1"])
      expect(await exists(ref)).toBe(true);
    for (const ref of ["mine/agent:1", "brig/toolbox:mine", "mine/brig:1"]) await engine.removeImage(ref);
  });

  it("leaves the image that a sandbox starts from by default, whatever is in it", async () => {
    await build("brig/base:old", { label: "base" });
    await engine.tagImage("brig/base:old", "brig/base:latest");
    expect(await prune()).toEqual({});
    await engine.removeImage("brig/base:latest");
    expect(await prune()).toEqual({ "brig/base:old": "removed" });
  });
});

describe("a prune of toolbox volumes", () => {
  const make = async (name: string, hash: string | null) =>
    await engine.createVolume(name, hash === null ? {} : { [toolboxLabel]: hash });

  it("removes those of another version that no container has mounted, whole", async () => {
    const current = await ensureToolboxVolume(engine, toolboxTag);
    for (const name of ["brig-toolbox-old-complete", "brig-toolbox-old"]) await make(name, "old");
    for (const name of ["brig-toolbox-used", "brig-toolbox-used-complete"]) await make(name, "used");
    await make("brig-toolbox-mine", null);
    await use(toolboxTag, "brig-toolbox-used");
    expect(await prune(true)).toEqual({
      "brig-toolbox-old brig-toolbox-old-complete": "unused",
      "brig-toolbox-used brig-toolbox-used-complete": "in-use",
    });
    expect(await volumeExists("brig-toolbox-old")).toBe(true);
    expect(await prune()).toEqual({
      "brig-toolbox-old brig-toolbox-old-complete": "removed",
      "brig-toolbox-used brig-toolbox-used-complete": "in-use",
    });
    const stay = [
      current,
      `${current}-complete`,
      "brig-toolbox-mine",
      "brig-toolbox-used",
      "brig-toolbox-used-complete",
    ];
    for (const name of stay) expect(await volumeExists(name)).toBe(true);
    for (const name of ["brig-toolbox-old", "brig-toolbox-old-complete"])
      expect(await volumeExists(name)).toBe(false);
  });
});
