import { expect, it, onTestFinished } from "vitest";
import type { Engine } from "../../src/sandbox/docker/engine-types.js";
import { volumeContainer } from "../../src/sandbox/images/toolbox-volume.js";
import { cacheLabel, cacheVolumeName, ensureCacheVolume } from "../../src/sandbox/volumes/cache-volume.js";
import { testEngine } from "../support/engine.js";
import { testLabels } from "../support/test-run.js";

it("a process that is killed in the middle leaves no volume that only looks prepared", async () => {
  const engine = await testEngine();
  const volume = cacheVolumeName(["killed", String(process.pid)]);
  onTestFinished(() => engine.removeVolume(volume));
  const options = { image: "brig/base:latest", label: "a test" };
  const killed = () => Promise.reject(new Error("killed"));
  const dying: Engine = { ...engine, createContainer: killed, removeContainer: killed, removeVolume: killed };
  await expect(ensureCacheVolume(dying, volume, options)).rejects.toThrow("killed");
  expect(await engine.inspectVolume(volume)).toBeNull();
  await ensureCacheVolume(engine, volume, options);
  expect((await engine.inspectVolume(volume))?.labels).toEqual({ [cacheLabel]: "a test" });
});

it("a new one has its label, keeps what is in it, and every user can write to it", async () => {
  const engine = await testEngine();
  const volume = cacheVolumeName(["written", String(process.pid)]);
  onTestFinished(() => engine.removeVolume(volume));
  const image = "brig/base:latest";
  for (const [uid, files] of [
    [1234, ["first"]],
    [1500, ["first", "second"]],
  ] as const) {
    await ensureCacheVolume(engine, volume, { image, label: "a test" });
    expect((await engine.inspectVolume(volume))?.labels).toEqual({ [cacheLabel]: "a test" });
    const script = `touch /cache/${files.at(-1)} && test "$(ls /cache | xargs)" = "${files.join(" ")}"`;
    const body = volumeContainer({
      image,
      argv: ["/bin/sh", "-c", script],
      labels: testLabels(),
      volume: {
        ...{ Type: "volume", Source: volume, Target: "/cache", ReadOnly: false },
        VolumeOptions: { NoCopy: true },
      },
    });
    const id = await engine.createContainer({ ...body, User: `${uid}:${uid}` });
    await engine.startContainer(id);
    expect(await engine.waitContainer(id)).toBe(0);
    await engine.removeContainer(id);
  }
});
