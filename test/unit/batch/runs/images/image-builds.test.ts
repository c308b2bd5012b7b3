import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { openTaskImages } from "../../../../../src/batch/runs/images/open-task-images.js";
import type { TaskImage } from "../../../../../src/batch/tasks/task.js";
import { BrigError } from "../../../../../src/errors.js";
import type { BuildOptions, Engine, ImageSummary } from "../../../../../src/sandbox/docker/engine-types.js";
import { homeId } from "../../../../../src/sandbox/images/toolbox-volume.js";

type BuiltImage = Extract<TaskImage, { kind: "build" }>;

let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "brig-builds-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
});

/** An engine that has what it built, and builds as the test says. */
function builder(build: (options: BuildOptions, context: Buffer) => Promise<void>): Engine {
  const images = new Map<string, Partial<ImageSummary>>();
  return {
    arch: "amd64",
    inspectImage: async (ref: string) => images.get(ref) ?? null,
    tagImage: async () => undefined,
    async buildImage(context, options) {
      await build(options, await buffer(context));
      images.set(options.tag, { id: `sha256:${images.size}` });
    },
  } as Partial<Engine> as Engine;
}

async function image(name: string, timeoutSec = 0.01): Promise<BuiltImage> {
  await writeFile(join(directory, name), `FROM scratch\nLABEL chance=${directory}/${name}\n`);
  return { kind: "build", context: directory, dockerfile: name, buildArgs: {}, timeoutSec };
}

const untilAborted = (signal: AbortSignal | undefined) =>
  new Promise<never>((_, reject) => {
    if (signal?.aborted) reject(signal.reason);
    signal?.addEventListener("abort", () => reject(signal.reason));
  });

describe("a build", () => {
  it("that takes longer than its limit fails with the last lines of its log", async () => {
    const engine = builder(async ({ onProgress, signal }) => {
      for (let line = 1; line <= 30; line++) onProgress?.(`line ${line}`);
      await untilAborted(signal);
    });
    const images = openTaskImages({ engine });
    const lines = Array.from({ length: 20 }, (_, index) => `  line ${index + 11}`);
    await expect(images.ready(await image("Dockerfile"), { task: "org/one" })).rejects.toMatchObject({
      code: "image.build-failed",
      message: [
        "building the image of the task org/one took longer than its limit of 0.01 seconds",
        ...lines,
      ].join("\n"),
    });
  });

  it("waits for its turn when others are built", async () => {
    let [now, most] = [0, 0];
    let twoAreInside: () => void = () => undefined;
    const two = new Promise<void>((resolve) => {
      twoAreInside = resolve;
    });
    const engine = builder(async () => {
      now += 1;
      most = Math.max(most, now);
      if (now === 2) twoAreInside();
      await two;
      for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
      now -= 1;
    });
    const images = openTaskImages({ engine, maxAtOnce: 2 });
    const wanted = await Promise.all(["a", "b", "c", "d", "e"].map(image));
    const ready = await Promise.all(wanted.map((one) => images.ready({ ...one, timeoutSec: 60 })));
    expect(most).toBe(2);
    expect(new Set(ready.map(({ id }) => id)).size).toBe(5);
  });

  it("marks what it makes as left by this BRIG_HOME, and what it finishes as not left", async () => {
    const sent: string[] = [];
    const engine = builder(async ({ labels }, context) => {
      sent.push(context.toString("latin1"));
      expect(labels).toMatchObject({ "brig.unfinished-task-image": "" });
    });
    const one = await image("Dockerfile", 60);
    const bare = await openTaskImages({ engine }).ready(one);
    const marked = openTaskImages({ engine, brigHome: "/home/one" });
    await writeFile(join(directory, "more"), "another image");
    expect((await marked.ready(one)).reference).not.toBe(bare.reference);
    const instruction = `LABEL brig.unfinished-task-image=${homeId("/home/one")}`;
    expect(sent.map((context) => context.includes(`FROM scratch\n${instruction}\nLABEL chance=`))).toEqual([
      false,
      true,
    ]);
  });

  it("that the engine cannot read names the line of the task's own Dockerfile", async () => {
    const engine = builder(async () => {
      throw new BrigError("building the image x failed: dockerfile parse error line 3: unknown instruction", {
        code: "image.build-failed",
      });
    });
    await expect(
      openTaskImages({ engine, brigHome: "/h" }).ready(await image("Dockerfile", 60)),
    ).rejects.toMatchObject({ message: expect.stringContaining("parse error line 2:") });
  });
});

describe("what builds have left", () => {
  const label = `brig.unfinished-task-image=${homeId("/home/one")}`;

  /** Of the engine's images only those with the label are asked for. One is in use. */
  function left(): { engine: Engine; removed: string[] } {
    const removed: string[] = [];
    const engine: Partial<Engine> = {
      ...builder(async () => {
        throw new BrigError("no", { code: "image.build-failed" });
      }),
      listImages: async (labels) => {
        expect(labels).toEqual([label]);
        const images = [
          { id: "one", tags: [] },
          { id: "used", tags: [] },
          { id: "named", tags: ["a:1"] },
        ];
        return images as unknown as ImageSummary[];
      },
      removeImage: async (id) => {
        if (id === "used") throw new BrigError("in use", { code: "engine.failed" });
        removed.push(id);
      },
    };
    return { engine: engine as Engine, removed };
  }

  it("is removed after a run, but not what is in use or has a name", async () => {
    const { engine, removed } = left();
    await openTaskImages({ engine, brigHome: "/home/one" }).removeLeft();
    expect(removed).toEqual(["one"]);
  });

  it("stays after a run in which a build has failed, so that the next one goes on from there", async () => {
    const { engine, removed } = left();
    const images = openTaskImages({ engine, brigHome: "/home/one" });
    await expect(images.ready(await image("Dockerfile", 60))).rejects.toThrow();
    await images.removeLeft();
    expect(removed).toEqual([]);
  });
});
