import { expect, it } from "vitest";
import type { PulledBytes } from "../../src/sandbox/docker/calls/pull-bytes.js";
import { testEngine } from "../support/engine.js";
import { slowRegistry } from "../support/registry.js";

it("a pull says how many bytes of the image have come, and how many it has", async () => {
  const engine = await testEngine();
  const { arch } = await engine.info();
  await using registry = await slowRegistry(arch);
  const seen: PulledBytes[] = [];
  const pulling = engine.pullImage(registry.image, {
    onProgress: (_line, pulled) => {
      if (pulled !== undefined) seen.push(pulled);
    },
  });
  try {
    // The engine says so now and then, and nothing of the second half can have come.
    await expect.poll(() => seen.at(-1)?.downloaded ?? 0).toBeGreaterThan(0);
    expect(seen.at(-1)).toMatchObject({ total: registry.layerBytes, unpacked: 0 });
    expect(seen.at(-1)?.downloaded).toBeLessThanOrEqual(registry.layerBytes / 2);
    registry.release();
    await pulling;
    const whole = registry.layerBytes;
    expect(seen.at(-1)).toEqual({ downloaded: whole, unpacked: whole, total: whole });
    expect((await engine.inspectImage(registry.image))?.arch).toBe(arch);
  } finally {
    registry.release();
    await pulling.catch(() => undefined);
    await engine.removeImage(registry.image);
  }
});
