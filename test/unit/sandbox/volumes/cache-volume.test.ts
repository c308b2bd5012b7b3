import { expect, it, vi } from "vitest";
import { BrigError } from "../../../../src/errors.js";
import type { ContainerBody, Engine, VolumeSummary } from "../../../../src/sandbox/docker/engine-types.js";
import { cacheVolumeName, ensureCacheVolume } from "../../../../src/sandbox/volumes/cache-volume.js";
import { failure } from "../played-sandbox.js";

const broken = new BrigError("no", { code: "engine.failed" });
const volume = (labels: Record<string, string>): VolumeSummary => ({
  ...{ name: "cache", labels, mountpoint: "/volumes/cache", createdAt: null },
});

/** An engine with a volume, or none, that says in which order it was asked for what. */
function engineWith(found: VolumeSummary | null, fails?: "create" | "remove") {
  const calls: string[] = [];
  const bodies: ContainerBody[] = [];
  const engine = {
    inspectVolume: async (name: string) => {
      calls.push(`look at ${name}`);
      return found;
    },
    removeVolume: async (name: string) => void calls.push(`remove volume ${name}`),
    createContainer: async (body: ContainerBody) => {
      calls.push("create");
      bodies.push(body);
      if (fails === "create") throw broken;
      return "container-1";
    },
    removeContainer: async (id: string) => {
      calls.push(`remove ${id}`);
      if (fails === "remove") throw broken;
    },
  };
  return { engine: engine as unknown as Engine, calls, bodies };
}

const ensure = async (engine: Engine) =>
  await ensureCacheVolume(engine, "cache", { image: "brig/base", label: "npm of /repo" });

it("a cache has the same name each time, another one for other names, and for other users", () => {
  const getuid = vi.spyOn(process, "getuid").mockReturnValue(1000);
  const name = cacheVolumeName(["npm", "/repo"]);
  expect(name).toMatch(/^brig-cache-[0-9a-f]{24}$/);
  expect(cacheVolumeName(["npm", "/repo"])).toBe(name);
  const others = [["npm"], ["npm/repo"], ["/repo", "npm"], ["npm", "/repo", ""], ['npm","/repo']];
  const names = new Set([name, ...others.map(cacheVolumeName)]);
  expect(names.size).toBe(others.length + 1);
  getuid.mockReturnValue(1001);
  expect(names).not.toContain(cacheVolumeName(["npm", "/repo"]));
});

it("a cache that there is is left alone", async () => {
  const { engine, calls } = engineWith(volume({ "brig.cache": "npm of /other" }));
  await ensure(engine);
  expect(calls).toEqual(["look at cache"]);
});

it("a cache that there is not is made by a container that never starts, with its label", async () => {
  const { engine, calls, bodies } = engineWith(null);
  await ensure(engine);
  expect(calls).toEqual(["look at cache", "create", "remove container-1"]);
  expect(bodies).toEqual([
    expect.objectContaining({
      Image: "brig/base",
      Entrypoint: ["/nothing"],
      Cmd: [],
      Labels: { "brig.toolbox": "cache" },
      HostConfig: expect.objectContaining({
        Mounts: [
          {
            Type: "volume",
            Source: "cache",
            Target: "/tmp",
            ReadOnly: false,
            VolumeOptions: { Labels: { "brig.cache": "npm of /repo" } },
          },
        ],
      }),
    }),
  ]);
});

it.for<Record<string, string>>([{}, { "brig.toolbox": "cache" }])(
  "a volume of that name with the labels %j is made anew",
  async (labels) => {
    const { engine, calls } = engineWith(volume(labels));
    await ensure(engine);
    expect(calls).toEqual(["look at cache", "remove volume cache", "create", "remove container-1"]);
  },
);

it.for(["create", "remove"] as const)(
  "what is left when the engine fails to %s is removed",
  async (fails) => {
    const { engine, calls } = engineWith(null, fails);
    expect(await failure(ensure(engine))).toBe(broken);
    expect(calls.at(-1)).toBe("remove volume cache");
  },
);
