import { expect, it } from "vitest";
import { configSchema } from "../../../src/agent/config/config-schema.js";
import { openBatchImages } from "../../../src/command/batch-images.js";
import type { Engine, ImageSummary } from "../../../src/sandbox/docker/engine-types.js";
import { testContext } from "../../support/cli-context.js";

const hash = "0".repeat(32);
const old: Partial<ImageSummary> = {
  id: "sha256:1",
  tags: [`brig-task:${hash}`],
  labels: { "brig.task-image": hash },
  createdAt: new Date(0),
  lastTaggedAt: null,
};

/** An engine with one image of a task of a megabyte, which was used long ago. */
function engineWithImage() {
  const removed: string[] = [];
  const engine: Partial<Engine> = {
    listImages: async () => [old as ImageSummary],
    inspectImage: async (ref) => (ref === `brig-task:${hash}` ? (old as ImageSummary) : null),
    imageHistory: async () => [{ createdAt: 0, createdBy: "COPY", bytes: 1_000_000 }] as never,
    removeImage: async (ref) => {
      removed.push(ref);
    },
  };
  return { engine: engine as Engine, removed };
}

it.each([
  [{ imageBudget: 999_999 }, {}, 1],
  [{ imageBudget: 1_000_000 }, {}, 0],
  [{}, { budget: "1kB" }, 1],
  [{ imageBudget: 2_000_000 }, { budget: "1kB" }, 0],
  [{}, {}, 0],
])("with %j and the configuration %j %d images go", async (flags, images, count) => {
  const { engine, removed } = engineWithImage();
  const config = configSchema.parse({ images });
  const opened = openBatchImages(flags, { engine, config, context: testContext() });
  await opened.tidy(new AbortController().signal);
  expect(removed).toHaveLength(count);
});

it("a failure to remove images is a warning, because the run can go on", async () => {
  const context = testContext();
  const engine = {
    listImages: () => Promise.reject(new Error("no\u001b[31m disk")),
  } as Partial<Engine> as Engine;
  const config = configSchema.parse({});
  await openBatchImages({ imageBudget: 0 }, { engine, config, context }).tidy(new AbortController().signal);
  expect(context.written().stderr).toMatch(/^brig: images of tasks cannot be removed: no.* disk\n$/);
  expect(context.written().stderr).not.toContain("\u001b");
});
