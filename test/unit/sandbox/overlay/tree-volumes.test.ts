import { describe, expect, it, vi } from "vitest";
import { BrigError } from "../../../../src/errors.js";
import { RefusedRequest } from "../../../../src/sandbox/docker/engine-failure.js";
import type { Engine, VolumeSummary } from "../../../../src/sandbox/docker/engine-types.js";
import { sessionLabels } from "../../../../src/sandbox/labels.js";
import {
  createTreeVolumes,
  overlayOptions,
  reclaimTreeVolumes,
  removeTreeVolumes,
  treeVolumes,
  volumeDirectory,
} from "../../../../src/sandbox/overlay/tree-volumes.js";
import type { OverlayLayers } from "../../../../src/sandbox/plan/plan.js";
import { fakeWaits } from "../../../support/fake-waits.js";

const [upper, work, merged] = ["upper", "work", "merged"].map((name) => `brig-1-${name}`) as [
  string,
  string,
  string,
];
const placeOf = (volume: string) => `/docker/volumes/${volume}/_data`;
const layers = { id: "1", lower: "/repo", upper: placeOf(upper), work: placeOf(work) } as OverlayLayers;

/** What an engine says when it refuses a request with this status. */
function refusal(status: number): BrigError {
  return new BrigError("refused", {
    code: "engine.failed",
    hint: "",
    cause: new RefusedRequest(status, "no"),
  });
}

it("the layers of an overlay are where the engine keeps its volumes", () => {
  expect(treeVolumes("1")).toEqual({ upper, work, merged });
  expect(volumeDirectory("/docker", upper)).toBe(layers.upper);
  expect(overlayOptions(layers)).toBe(
    `lowerdir=/repo,upperdir=${layers.upper},workdir=${layers.work},xino=on,redirect_dir=off,metacopy=off,index=off`,
  );
});

describe("the volumes of a tree are created", () => {
  type Created = [name: string, labels: Record<string, string>, options: Record<string, string> | undefined];

  function engineWith(answer: (name: string) => Promise<string>) {
    const created: Created[] = [];
    const ended: string[] = [];
    const createVolume: Engine["createVolume"] = async (name, labels, options) => {
      created.push([name, labels, options]);
      try {
        return { name, mountpoint: await answer(name) } as VolumeSummary;
      } finally {
        ended.push(name);
      }
    };
    return { engine: { createVolume } as Engine, created, ended };
  }

  it("with labels that say what each is", async () => {
    const { engine, created } = engineWith(async (name) => placeOf(name));
    await createTreeVolumes(engine, layers, { "brig.session": "1" });
    const labels = (kind: string) => ({ "brig.session": "1", "brig.workspace": "/repo", "brig.tree": kind });
    expect(created).toEqual([
      [upper, labels("upper"), undefined],
      [work, labels("work"), undefined],
      [merged, labels("merged"), { type: "overlay", device: "overlay", o: overlayOptions(layers) }],
    ]);
  });

  it.each([upper, work])("where they were planned to be, or not at all: %s", async (elsewhere) => {
    const { engine } = engineWith(async (name) => (name === elsewhere ? "/elsewhere" : placeOf(name)));
    await expect(createTreeVolumes(engine, layers, {})).rejects.toMatchObject({
      code: "policy.not-enforced",
      message: expect.stringMatching(/^the engine keeps the volume brig-1-upper in .*, not in "\/docker/),
      hint: expect.stringContaining("--workspace bind"),
    });
  });

  it("and if one cannot be, that is reported once the others have been answered", async () => {
    const { engine, ended } = engineWith(async (name) => {
      if (name === upper) throw new Error("full");
      await new Promise((resolve) => setImmediate(resolve));
      return placeOf(name);
    });
    await expect(createTreeVolumes(engine, layers, {})).rejects.toThrow("full");
    expect(ended.toSorted()).toEqual([merged, upper, work]);
  });
});

describe("the volumes of a tree are removed", () => {
  function engineWith(answer: (name: string, tries: number) => Error | null) {
    const asked: string[] = [];
    const removeVolume = async (name: string) => {
      asked.push(name);
      const error = answer(name, asked.filter((one) => one === name).length);
      if (error !== null) throw error;
    };
    return { engine: { removeVolume }, asked };
  }

  it("with the overlay before its layers", async () => {
    const { engine, asked } = engineWith(() => null);
    await removeTreeVolumes(engine, "1");
    expect(asked).toEqual([merged, upper, work]);
  });

  it("again while one is in use", async () => {
    using _clock = fakeWaits();
    const { engine, asked } = engineWith((name, tries) =>
      name === merged && tries < 40 ? refusal(409) : null,
    );
    const removed = removeTreeVolumes(engine, "1");
    await vi.runAllTimersAsync();
    await removed;
    expect(asked).toEqual([...Array<string>(40).fill(merged), upper, work]);
    const never = engineWith((name) => (name === upper ? refusal(409) : null));
    const failing = removeTreeVolumes(never.engine, "1").catch((error: unknown) => error);
    await vi.runAllTimersAsync();
    expect(await failing).toMatchObject({ code: "engine.failed" });
    expect(never.asked.filter((name) => name === upper)).toHaveLength(40);
  });

  it.each([
    ["another refusal", refusal(500)],
    ["any other error", new Error("cut")],
  ])("once, after %s", async (_name, error) => {
    const { engine, asked } = engineWith(() => error);
    await expect(removeTreeVolumes(engine, "1")).rejects.toBe(error);
    expect(asked).toEqual([merged]);
  });
});

describe("the volumes of a session that is gone", () => {
  const labelsOf = (leaseSeconds: number) =>
    sessionLabels({
      ...{ sessionId: "1", version: "0.1.0", leaseSeconds, createdAt: new Date(0) },
      owner: { pid: 1, startedAt: null, bootId: null, host: "h" },
    });

  function engineWith(
    names: readonly string[],
    { labels = labelsOf(60), error }: { labels?: Record<string, string>; error?: Error } = {},
  ) {
    const removed: string[] = [];
    const engine = {
      listVolumes: async (wanted: string[]) => {
        expect(wanted).toEqual(["brig.tree", "brig.session=1"]);
        return names.map((name) => ({ name, labels }) as unknown as VolumeSummary);
      },
      removeVolume: async (name: string) => {
        if (error !== undefined) throw error;
        removed.push(name);
      },
    };
    return { engine, removed };
  }

  it("are removed, with the overlay before its layers, and no others", async () => {
    const { engine, removed } = engineWith([work, "brig-2-upper", upper, merged]);
    expect(await reclaimTreeVolumes(engine, "1")).toBe(true);
    expect(removed).toEqual([merged, upper, work]);
  });

  it("are left if the user keeps them", async () => {
    const { engine, removed } = engineWith([merged, upper, work], { labels: labelsOf(0) });
    expect(await reclaimTreeVolumes(engine, "1")).toBe(false);
    expect(removed).toEqual([]);
  });

  it("may be none", async () => {
    const { engine } = engineWith([]);
    expect(await reclaimTreeVolumes(engine, "1")).toBe(true);
  });

  it("are left while they are in use, and other errors are reported", async () => {
    expect(await reclaimTreeVolumes(engineWith([upper], { error: refusal(409) }).engine, "1")).toBe(false);
    const other = engineWith([upper], { error: new Error("cut") });
    await expect(reclaimTreeVolumes(other.engine, "1")).rejects.toThrow("cut");
  });

  it("are removed without labels that can be read", async () => {
    const { engine, removed } = engineWith([upper], { labels: {} });
    expect(await reclaimTreeVolumes(engine, "1")).toBe(true);
    expect(removed).toEqual([upper]);
  });
});
