import { expect, it } from "vitest";
import { neverStarted, type RecordedPlace } from "../../../../../src/batch/runs/place/never-started.js";
import { BrigError } from "../../../../../src/errors.js";
import { RefusedRequest } from "../../../../../src/sandbox/docker/engine-failure.js";
import { recordedNow } from "../../../../../src/sandbox/sandbox-records.js";
import { temporaryFolder } from "../../../../support/batch-runs.js";

interface Made {
  name: string | undefined;
  session: string | undefined;
}

async function placeWith(fails?: Error): Promise<{ place: RecordedPlace; made: Made[] }> {
  const made: Made[] = [];
  const brigHome = await temporaryFolder();
  const engine = {
    endpoint: "unix:///e",
    createContainer: async (body: { Labels: Record<string, string> }, options: { name?: string }) => {
      made.push({ name: options.name, session: recordedNow(brigHome)[0]?.sessionId });
      expect(body.Labels["brig.session"]).toBe(made[0]?.session);
      if (fails !== undefined) throw fails;
      return "c";
    },
    removeContainer: async () => undefined,
  };
  return { place: { engine: engine as unknown as RecordedPlace["engine"], brigHome }, made };
}

it("a container that is made for the files of an image is recorded as long as it may exist", async () => {
  const { place, made } = await placeWith();
  const container = await neverStarted(place, "i");
  expect(recordedNow(place.brigHome)).toMatchObject([{ endpoint: "unix:///e", owner: { pid: process.pid } }]);
  const [{ name, session } = {}] = made;
  expect(name).toBe(`brig-${session}`);
  await container[Symbol.asyncDispose]();
  expect(recordedNow(place.brigHome)).toEqual([]);
});

it.each([
  ["and not after the engine has refused it", new RefusedRequest(404, "no such image"), 0],
  ["and also if the engine has not answered", new Error("cut"), 1],
])("such a container is recorded, %s", async (_, cause, recordsLeft) => {
  const { place } = await placeWith(new BrigError("cannot create", { code: "engine.failed", cause }));
  await expect(neverStarted(place, "i")).rejects.toThrow("cannot create");
  expect(recordedNow(place.brigHome)).toHaveLength(recordsLeft);
});
