import { expect, it } from "vitest";
import {
  createMemoryVolumes,
  memoryLabel,
  planMemory,
} from "../../../../../src/sandbox/docker/podman/memory-volumes.js";

const { volumes } = planMemory({ "/tmp": "size=8m,nosuid", "/run": "size=4096" }, "c");

/** An engine that keeps volumes, except those with a name that it refuses. */
function engineThat(refuses: string) {
  const there = new Map<string, Record<string, string>>();
  const refusal = new Error("no such driver");
  const engine = {
    async createVolume(name: string, labels: Record<string, string>) {
      if (name === refuses) throw refusal;
      there.set(name, labels);
      return { name, labels, mountpoint: "", createdAt: null };
    },
    async removeVolume(name: string) {
      if (!there.delete(name)) throw new Error("no such volume");
    },
  };
  return { engine, there, refusal };
}

it("volumes in memory are made with the labels of their container and where they are mounted", async () => {
  const { engine, there } = engineThat("another");
  await createMemoryVolumes(volumes, { labels: { a: "b" }, engine });
  expect([...there]).toEqual([
    ["c-memory-0", { a: "b", [memoryLabel]: "/tmp" }],
    ["c-memory-1", { a: "b", [memoryLabel]: "/run" }],
  ]);
});

it("none is left where one of them is refused, and the engine's error is the caller's", async () => {
  for (const { Name } of volumes) {
    const { engine, there, refusal } = engineThat(Name);
    await expect(createMemoryVolumes(volumes, { labels: {}, engine })).rejects.toBe(refusal);
    expect(there.size).toBe(0);
  }
});
