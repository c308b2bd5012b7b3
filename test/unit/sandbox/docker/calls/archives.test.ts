import type { ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import { readEnvironment } from "../../../../../src/lib/env.js";
import { connectEngine } from "../../../../../src/sandbox/docker/connect.js";
import { fakeEngine } from "../../../../support/fake-engine.js";

const env = readEnvironment({ HOME: "/proc/nonexistent" });

async function changesFrom(
  answer: (response: ServerResponse) => void,
  signal?: AbortSignal,
): Promise<unknown> {
  await using fake = await fakeEngine((_, response) => answer(response));
  const engine = await connectEngine({ env, endpoint: fake.address });
  return await engine.containerChanges("abc", { signal });
}

describe("an engine that is asked what a container has changed", () => {
  it.each(["null", "[]", "\n"])("may say that there is nothing, by %j", async (text) => {
    expect(await changesFrom((response) => response.end(text))).toEqual([]);
  });

  it("is not waited for any longer after an abort, even in the middle of its answer", async () => {
    const stop = new AbortController();
    const begun = (response: ServerResponse) => {
      response.write('[{"Path":"/a","Kind":1},');
      setTimeout(() => stop.abort(new Error("stopped")), 20);
    };
    await expect(changesFrom(begun, stop.signal)).rejects.toThrow("stopped");
  });

  it.each(["[{", '[{"Path":"/a"}]', "<html>"])("is not believed when it says %j", async (text) => {
    await expect(changesFrom((response) => response.end(text))).rejects.toMatchObject({
      code: "engine.failed",
      message: expect.stringContaining("not like a container engine"),
    });
  });

  it("is cut off when it names more than can be looked at", async () => {
    const path = "x".repeat(1_000_000);
    const endless = (response: ServerResponse) => {
      response.on("error", () => undefined);
      const more = () => {
        while (!response.destroyed && response.write(`{"Path":"${path}","Kind":1},`));
        if (!response.destroyed) response.once("drain", more);
      };
      response.write("[");
      more();
    };
    await expect(changesFrom(endless)).rejects.toMatchObject({ code: "engine.failed", errno: "EFBIG" });
  });
});
