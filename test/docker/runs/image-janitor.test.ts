import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execaNode } from "execa";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { openTaskImages } from "../../../src/batch/runs/images/open-task-images.js";
import { listAllImages } from "../../../src/cli/images/list-command.js";
import { type PruneFlags, pruneAllImages } from "../../../src/cli/images/prune-command.js";
import { packTar } from "../../../src/sandbox/docker/calls/tar.js";
import type { Engine } from "../../../src/sandbox/docker/engine-types.js";
import { BuiltImageStore } from "../../../src/sandbox/images/dockerfile/built-image-store.js";
import type { ReadyImage } from "../../../src/sandbox/images/dockerfile/image-builds.js";
import { testContext } from "../../support/cli-context.js";
import { containerBody } from "../../support/container-body.js";
import { type HarmedEngine, harmedEngine } from "../../support/engine.js";

const mb = 1_000_000;
let harmed: HarmedEngine;
let engine: Engine;
let directory: string;
let store: BuiltImageStore;

beforeAll(async () => {
  harmed = await harmedEngine({ images: [] });
  engine = harmed.engine;
  const files = [
    { path: "Dockerfile", mode: 0o644, content: Buffer.from("FROM scratch\nCOPY data /base\n") },
    { path: "data", mode: 0o644, content: randomBytes(5 * mb) },
  ];
  await engine.buildImage(packTar(files), { tag: "mine/base:1" });
});
afterAll(() => harmed[Symbol.asyncDispose]());
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "brig-janitor-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  store = new BuiltImageStore(engine);
  for (const { tag } of await store.list()) await engine.removeImage(tag);
});

/** An image with two megabytes of its own; the shared part is the first layer of all that have it. */
async function build(
  name: string,
  { from = "mine/base:1", budgetBytes }: { from?: string; budgetBytes?: number } = {},
) {
  const context = await mkdtemp(join(directory, "context-"));
  await writeFile(join(context, "Dockerfile"), `FROM ${from}\nCOPY data /${name}\n`);
  await writeFile(join(context, "data"), randomBytes(2 * mb));
  const warnings: unknown[] = [];
  const images = openTaskImages({ engine, budgetBytes, onWarning: (error) => warnings.push(error) });
  const image = { kind: "build", context, dockerfile: "Dockerfile", buildArgs: {}, timeoutSec: 120 } as const;
  const ready = await images.ready(image, { task: name });
  expect(warnings).toEqual([]);
  return { ready, again: () => images.ready(image, { task: name }) };
}

async function buildAll(names: string[]): Promise<ReadyImage[]> {
  const built: ReadyImage[] = [];
  for (const name of names) {
    const { ready } = await build(name);
    ready[Symbol.dispose]();
    built.push(ready);
  }
  return built;
}

const tasks = async () => (await store.list()).map(({ task }) => task);
const soon = () => new Date(Date.now() + 1_000_000);

describe("the images of tasks on an engine", () => {
  it("are removed in the order of their last use, until the rest are within the budget", async () => {
    const { ready, again } = await build("one");
    ready[Symbol.dispose]();
    await buildAll(["two", "three", "four"]);
    (await again())[Symbol.dispose]();
    expect(await tasks()).toEqual(["two", "three", "four", "one"]);
    const dry = await store.tidy({ budgetBytes: 5 * mb, usedBefore: soon(), isDryRun: true });
    expect(await tasks()).toHaveLength(4);
    const report = await store.tidy({ budgetBytes: 5 * mb, usedBefore: soon() });
    expect(report).toMatchObject({ bytesBefore: 8 * mb, bytesAfter: 4 * mb });
    expect(dry).toEqual(report);
    expect(report.removed.map(({ task, freedBytes }) => [task, freedBytes])).toEqual([
      ["two", 2 * mb],
      ["three", 2 * mb],
    ]);
    expect(report.kept).toBe(2);
    expect(await tasks()).toEqual(["four", "one"]);
    expect(await engine.inspectImage("mine/base:1")).not.toBeNull();
  });

  it("stay if a container uses them, a run needs them, or they were used just now", async () => {
    const [one] = await buildAll(["one"]);
    const container = await engine.createContainer(containerBody(one?.reference ?? "", ["/none"]));
    const { ready } = await build("two");
    expect(await store.tidy({ budgetBytes: 0, usedBefore: soon() })).toMatchObject({ removed: [] });
    expect(await tasks()).toEqual(["one", "two"]);
    ready[Symbol.dispose]();
    await engine.removeContainer(container);
    expect(await store.tidy({ budgetBytes: 0, usedBefore: new Date(0) })).toMatchObject({ removed: [] });
    await store.tidy({ budgetBytes: 0, usedBefore: soon() });
    expect(await tasks()).toEqual([]);
  });

  it("stay as long as another process needs them, and no longer than it lives", async () => {
    const [one] = await buildAll(["one"]);
    const program = join(import.meta.dirname, "../../fixtures/hold-image.ts");
    const other = execaNode(program, [one?.reference ?? ""], {
      nodeOptions: ["--import", "tsx"],
      reject: false,
    });
    onTestFinished(() => void other.kill("SIGKILL"));
    await once(other.stdout, "data");
    expect(await store.tidy({ budgetBytes: 0, usedBefore: soon() })).toMatchObject({ removed: [], kept: 1 });
    other.kill("SIGKILL");
    await other;
    expect(await store.tidy({ budgetBytes: 0, usedBefore: soon() })).toMatchObject({ kept: 0 });
    expect(await tasks()).toEqual([]);
  });

  it("are only those that brig built: neither what was built on them, nor what has their labels", async () => {
    const [one] = await buildAll(["one"]);
    const labels = { "brig.task-image": "0".repeat(32), "brig.task": "one" };
    const dockerfile = (from: string) =>
      packTar([{ path: "Dockerfile", mode: 0o644, content: Buffer.from(`FROM ${from}\nENV A=1\n`) }]);
    await engine.buildImage(dockerfile(one?.reference ?? ""), { tag: "mine/child:1" });
    await engine.buildImage(dockerfile("mine/base:1"), { tag: "mine/labelled:1", labels });
    await engine.tagImage("mine/base:1", "brig-task:unlabelled");
    const names = ["mine/base:1", "mine/child:1", "mine/labelled:1", "brig-task:unlabelled"];
    onTestFinished(async () => {
      for (const name of names.slice(1)) await engine.removeImage(name);
    });
    expect(await tasks()).toEqual(["one"]);
    await store.tidy({ budgetBytes: 0, usedBefore: soon() });
    expect(await tasks()).toEqual([]);
    for (const name of names) expect(await engine.inspectImage(name), name).not.toBeNull();
  });

  it("are tidied after a build, and never that which was just built", async () => {
    await buildAll(["one", "two"]);
    const real = Date.now;
    // The others were used long ago.
    Date.now = () => real() + 1_000_000;
    onTestFinished(() => {
      Date.now = real;
    });
    const { ready } = await build("three", { budgetBytes: mb });
    expect(await tasks()).toEqual(["three"]);
    expect(await engine.inspectImage(ready.reference)).not.toBeNull();
    ready[Symbol.dispose]();
  });
});

describe("brig image", () => {
  async function shown(run: (context: ReturnType<typeof testContext>) => Promise<void>): Promise<string> {
    const context = testContext();
    await run(context);
    return context.written().stdout;
  }

  it("lists the images of tasks, and removes those that nobody needs when it is told to", async () => {
    const [one] = await buildAll(["org/one"]);
    const { ready: held } = await build("org/two");
    // Images that are built on one of brig's own inherit its labels.
    const dockerfile = [
      { path: "Dockerfile", mode: 0o644, content: Buffer.from("FROM mine/base:1\nENV A=2\n") },
    ];
    await engine.buildImage(packTar(dockerfile), { tag: "mine/on-base:1", labels: { "brig.image": "base" } });
    onTestFinished(() => engine.removeImage("mine/on-base:1"));
    const list = await shown((context) => listAllImages(engine, {}, context));
    expect(list).not.toContain("mine/on-base:1");
    expect(list).toMatch(/^task +brig-task:[0-9a-f]{32} .*MiB.* used 20.*, first for org\/one$/m);
    const listed = JSON.parse(await shown((context) => listAllImages(engine, { json: true }, context)));
    expect(listed).toMatchObject([
      { name: "task", id: one?.id, tags: [one?.reference], task: "org/one" },
      { task: "org/two", lastUsedAt: expect.stringMatching(/^20/) },
    ]);

    const real = Date.now;
    // All were used long ago.
    Date.now = () => real() + 1_000_000;
    onTestFinished(() => {
      Date.now = real;
    });
    const prune = (flags: PruneFlags) => shown((context) => pruneAllImages(engine, flags, context));
    expect(await prune({})).toBe("nothing to remove\n");
    expect(await prune({ imageBudget: 100 * mb })).toContain("2 images of tasks and projects stay: ");
    expect(JSON.parse(await prune({ tasks: true, dryRun: true, json: true }))).toEqual({
      objects: [{ kind: "image", names: [one?.reference], bytes: 2 * mb, verdict: "unused", removed: false }],
      bytes: 2 * mb,
    });
    expect(await tasks()).toHaveLength(2);
    expect(await prune({ tasks: true })).toMatch(
      / removed\nfreed 1.9 MiB\n1 image of a task or project stays: /,
    );
    expect(await tasks()).toEqual(["org/two"]);
    held[Symbol.dispose]();
  });
});
