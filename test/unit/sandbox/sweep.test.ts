import { describe, expect, it } from "vitest";
import type { ContainerSummary, VolumeSummary } from "../../../src/docker/engine-types.js";
import { BrigError } from "../../../src/errors.js";
import type { HostProcesses } from "../../../src/lib/owner.js";
import { LABELS, sessionLabels } from "../../../src/sandbox/labels.js";
import { REMOVABLE, type SweepOptions, type SweepVerdict, sweep } from "../../../src/sandbox/sweep.js";

const now = new Date("2026-11-20T12:00:00Z");
const processes: HostProcesses = {
  host: "vm-1",
  bootId: "boot-1",
  isAlive: (pid) => pid === 100,
  startOf: async (pid) => (pid === 100 ? "5000" : null),
};

interface Given {
  pid?: number;
  startedAt?: string;
  bootId?: string;
  host?: string;
  leaseSeconds?: number;
  ageSeconds?: number;
  state?: string;
  labels?: Record<string, string>;
}

/** A running container of a living owner, unless `given` says otherwise. */
function container(id: string, given: Given = {}): ContainerSummary {
  const {
    pid = 100,
    startedAt = "5000",
    bootId = "boot-1",
    host = "vm-1",
    leaseSeconds = 60,
    ageSeconds = 3600,
  } = given;
  const createdAt = new Date(now.getTime() - ageSeconds * 1000);
  const owner = { pid, startedAt, bootId, host };
  const labels = {
    ...sessionLabels({ sessionId: `s-${id}`, version: "0.1.0", owner, createdAt, leaseSeconds }),
    ...given.labels,
  };
  return { id, names: [], image: "i", state: given.state ?? "running", labels, createdAt };
}

class FakeEngine {
  readonly removed: string[] = [];
  lists = 0;

  readonly #containers: ContainerSummary[];
  readonly #volumes: VolumeSummary[];
  readonly #refused: string[];

  constructor(containers: ContainerSummary[], volumes: VolumeSummary[] = [], refused: string[] = []) {
    this.#containers = containers;
    this.#volumes = volumes;
    this.#refused = refused;
  }

  async listContainers(labels: string[]): Promise<ContainerSummary[]> {
    this.lists++;
    return this.#containers.filter((one) => labels.every((label) => label in one.labels));
  }

  async removeContainer(id: string): Promise<void> {
    this.#refuse(id);
    this.removed.push(id);
  }

  async listVolumes(labels: string[]): Promise<VolumeSummary[]> {
    this.lists++;
    return this.#volumes.filter((one) => labels.every((label) => label in one.labels));
  }

  async removeVolume(name: string): Promise<void> {
    this.#refuse(name);
    this.removed.push(name);
  }

  #refuse(name: string): void {
    if (this.#refused.includes(name)) throw new BrigError(`${name} is in use`, { code: "engine.failed" });
  }
}

async function swept(engine: FakeEngine, options: Partial<SweepOptions> = {}) {
  const containers = await engine.listContainers([LABELS.session]);
  engine.lists--;
  const records = containers.map(({ id, labels }) => ({
    sessionId: labels[LABELS.session] ?? "",
    containerId: id,
  }));
  return await sweep(engine, { now, processes, records, ...options });
}

describe("a sweep", () => {
  it.each<[string, string, boolean, Given]>([
    ["whose owner lives", "owner-alive", false, {}],
    ["whose owner is gone", "owner-gone", true, { pid: 999 }],
    ["whose owner's pid went to another process", "owner-gone", true, { startedAt: "4000" }],
    ["of an earlier boot", "owner-gone", true, { bootId: "boot-0" }],
    ["of another machine, dead or not", "other-machine", false, { host: "vm-2", pid: 999 }],
    ["of another machine that never started", "other-machine", false, { host: "vm-2", state: "created" }],
    ["that was never started, after its lease", "never-started", true, { state: "created", ageSeconds: 61 }],
    ["that was never started, a minute ago", "owner-alive", false, { state: "created", ageSeconds: 60 }],
    [
      "that was never started, a moment more than a minute ago",
      "never-started",
      true,
      { state: "created", ageSeconds: 60.001, leaseSeconds: 60 },
    ],
    [
      "that was never started, at the end of its lease",
      "owner-alive",
      false,
      { state: "created", ageSeconds: 100, leaseSeconds: 100 },
    ],
    [
      "that was never started, just after its lease",
      "never-started",
      true,
      { state: "created", ageSeconds: 100.001, leaseSeconds: 100 },
    ],
    [
      "that is just being started",
      "owner-alive",
      false,
      { state: "created", ageSeconds: 30, leaseSeconds: 1 },
    ],
    [
      "that was never started, before its long lease",
      "owner-alive",
      false,
      { state: "created", leaseSeconds: 7200 },
    ],
    [
      "that nobody is left to start, kept or not",
      "never-started",
      true,
      { state: "created", pid: 999, leaseSeconds: 0, ageSeconds: 5 },
    ],
    ["that was asked to be kept", "kept-on-request", false, { pid: 999, leaseSeconds: 0 }],
    [
      "with labels that cannot be read",
      "unreadable-labels",
      false,
      { pid: 999, labels: { "brig.created": "?" } },
    ],
  ])("judges a container %s as %s", async (_, verdict, removed, given) => {
    const engine = new FakeEngine([container("c", given)]);
    expect((await swept(engine)).containers).toEqual([{ id: "c", sessionId: "s-c", verdict, removed }]);
    expect(engine.removed).toEqual(removed ? ["c"] : []);
  });

  it("removes nothing else than what nobody uses", () => {
    expect(REMOVABLE).toEqual(["owner-gone", "never-started", "stale-toolbox", "unused-cache"]);
  });

  it("leaves a container alone that an engine lists although it has no label", async () => {
    const engine = new FakeEngine([{ ...container("c", { pid: 999 }), labels: {} }]);
    engine.listContainers = async () => [{ ...container("c", { pid: 999 }), labels: {} }];
    const { containers } = await swept(engine);
    expect(containers).toEqual([{ id: "c", sessionId: null, verdict: "unreadable-labels", removed: false }]);
    expect(engine.removed).toEqual([]);
  });

  it("does not go on when the engine is gone", async () => {
    const gone = new BrigError("no engine", { code: "engine.unreachable" });
    const engine = new FakeEngine([container("c", { pid: 999 })], [volume("t-old", "old")]);
    engine.removeContainer = async () => {
      throw gone;
    };
    await expect(swept(engine)).rejects.toBe(gone);
  });

  it("does not see containers without brig's label", async () => {
    const foreign = { ...container("c", { pid: 999 }), labels: { "brig.owner-pid": "999" } };
    const engine = new FakeEngine([foreign]);
    expect((await swept(engine)).containers).toEqual([]);
    expect(engine.removed).toEqual([]);
  });

  it("only reports what no record names: labels may be anybody's", async () => {
    const dead = () => new FakeEngine([container("c", { pid: 999 })]);
    const verdict = async (options: Partial<SweepOptions>) =>
      (await swept(dead(), options)).containers.map(({ verdict, removed }) => [verdict, removed]);
    expect(await verdict({ records: [] })).toEqual([["unrecorded", false]]);
    expect(await verdict({ records: [{ sessionId: "s-c", containerId: "another" }] })).toEqual([
      ["unrecorded", false],
    ]);
    expect(await verdict({ records: [{ sessionId: "s-c", containerId: null }] })).toEqual([
      ["owner-gone", true],
    ]);
    expect(await verdict({ records: [], includeUnrecorded: true })).toEqual([["owner-gone", true]]);
  });

  it.each<[string, Given, SweepVerdict, boolean]>([
    ["whose owner has ended", { pid: 999 }, "never-started", true],
    ["whose owner reads a large image", { ageSeconds: 7200 }, "owner-alive", false],
    ["of another machine, as its image may say", { pid: 999, host: "vm-2" }, "other-machine", false],
    ["in which something runs nevertheless", { pid: 999, state: "running" }, "unrecorded", false],
  ])(
    "judges a container without a record, made for the files of its image, %s",
    async (_, given, ...rest) => {
      const labels = { [LABELS.imageFiles]: "" };
      const engine = new FakeEngine([container("c", { state: "created", labels, ...given })]);
      const [verdict, removed] = rest;
      expect((await swept(engine, { records: [] })).containers).toMatchObject([{ verdict, removed }]);
      expect(engine.removed).toEqual(removed ? ["c"] : []);
    },
  );

  it("removes kept containers of dead owners only when told to", async () => {
    const engine = new FakeEngine([
      container("dead", { pid: 999, leaseSeconds: 0 }),
      container("live", { leaseSeconds: 0 }),
    ]);
    await swept(engine, { includeKept: true });
    expect(engine.removed).toEqual(["dead"]);
  });

  it("only says what it would do on a dry run", async () => {
    const engine = new FakeEngine([container("c", { pid: 999 })], [volume("old", "1")]);
    const report = await swept(engine, { dryRun: true, toolbox: { label: "brig.toolbox", hash: "2" } });
    expect(report.containers).toMatchObject([{ verdict: "owner-gone", removed: false }]);
    expect(report.volumes).toMatchObject([{ verdict: "stale-toolbox", removed: false }]);
    expect(engine.removed).toEqual([]);
  });

  it("goes on when the engine refuses one removal", async () => {
    const engine = new FakeEngine([container("a", { pid: 999 }), container("b", { pid: 999 })], [], ["a"]);
    const { containers } = await swept(engine);
    expect(containers.map(({ id, removed }) => [id, removed])).toEqual([
      ["a", false],
      ["b", true],
    ]);
  });

  it("costs one call to the engine where there is nothing to remove", async () => {
    const engine = new FakeEngine([container("c")]);
    await swept(engine);
    expect(engine.lists).toBe(1);
  });
});

describe("the toolboxes", () => {
  const toolbox = { label: "brig.toolbox", hash: "new" };

  it("that are not in use any more go, the one in use stays", async () => {
    const engine = new FakeEngine(
      [],
      [volume("t-new", "new"), volume("t-old", "old"), volume("foreign", "old", "other")],
    );
    expect((await swept(engine, { toolbox })).volumes).toEqual([
      { id: "t-old", sessionId: null, verdict: "stale-toolbox", removed: true },
    ]);
    expect(engine.removed).toEqual(["t-old"]);
  });

  it("that another brig's containers use stay whole, with the mark that they are complete", async () => {
    const volumes = [volume("t-old-complete", "old"), volume("t-old", "old")];
    const engine = new FakeEngine([], volumes, ["t-old"]);
    expect((await swept(engine, { toolbox })).volumes).toMatchObject([
      { id: "t-old", verdict: "in-use", removed: false },
      { id: "t-old-complete", verdict: "in-use", removed: false },
    ]);
    expect(engine.removed).toEqual([]);
  });

  it("that were being filled when brig was killed lose the container that did it", async () => {
    const filler = (id: string, ageSeconds: number) => ({
      ...container(id, { ageSeconds }),
      labels: { "brig.toolbox": "new" },
    });
    const engine = new FakeEngine([filler("left", 600.001), filler("busy", 600)]);
    const found = await swept(engine, { toolbox });
    expect(found.containers).toMatchObject([{ id: "left", verdict: "unrecorded", removed: false }]);
    const dry = await swept(engine, { toolbox, includeUnrecorded: true, dryRun: true });
    expect(dry.containers).toMatchObject([{ id: "left", verdict: "never-started", removed: false }]);
    expect(engine.removed).toEqual([]);
    const forced = await swept(engine, { toolbox, includeUnrecorded: true });
    expect(forced.containers).toMatchObject([{ id: "left", verdict: "never-started", removed: true }]);
    expect(engine.removed).toEqual(["left"]);
  });

  it("are not looked at without knowing which one is in use", async () => {
    const engine = new FakeEngine([], [volume("t-old", "old")]);
    expect((await swept(engine)).volumes).toEqual([]);
  });
});

describe("the caches of MCP servers", () => {
  const cacheLabel = "brig.cache";
  const cache = (name: string, ageSeconds: number) => ({
    ...volume(name, "MCP server docs", cacheLabel),
    createdAt: new Date(now.getTime() - ageSeconds * 1000),
  });
  const caches = () => [
    cache("unused", 600.001),
    cache("used", 3600),
    cache("new", 600),
    { ...cache("ageless", 0), createdAt: null },
    { ...volume("foreign", "x", "other"), createdAt: new Date(0) },
  ];

  it("go unless they are used or new", async () => {
    const engine = new FakeEngine([], caches(), ["used"]);
    expect((await swept(engine, { cacheLabel })).volumes).toMatchObject([
      { id: "unused", verdict: "unused-cache", removed: true },
      { id: "used", verdict: "cache-in-use", removed: false },
    ]);
    expect(engine.removed).toEqual(["unused"]);
  });

  it("stay in a dry run", async () => {
    const engine = new FakeEngine([], caches());
    expect((await swept(engine, { cacheLabel, dryRun: true })).volumes).toMatchObject([
      { id: "unused", verdict: "unused-cache", removed: false },
      { id: "used", verdict: "unused-cache", removed: false },
    ]);
    expect(engine.removed).toEqual([]);
  });
});

function volume(name: string, hash: string, label = "brig.toolbox"): VolumeSummary {
  return { name, labels: { [label]: hash }, mountpoint: "", createdAt: now };
}

describe("the volumes of copy-on-write workspaces", () => {
  const id = "7a0c1d7e-0000-4000-8000-000000000000";
  const volumes = (given: Given = {}, name = `brig-${id}`) =>
    ["upper", "merged", "work"].map((kind) => ({
      name: `${name}-${kind}`,
      labels: { ...container("c", given).labels, [LABELS.session]: id, "brig.tree": kind },
      mountpoint: "/v",
      createdAt: now,
    }));
  const recorded = { sessionVolumeLabels: ["brig.tree"], records: [{ sessionId: id, containerId: null }] };
  const dead = { pid: 999 };

  it("go when their process is gone, the merged one before its layers", async () => {
    const engine = new FakeEngine([], volumes(dead));
    const report = await swept(engine, recorded);
    expect(report.volumes.map(({ verdict, sessionId }) => [verdict, sessionId])).toEqual(
      Array.from({ length: 3 }, () => ["owner-gone", id]),
    );
    expect(engine.removed).toEqual(["merged", "upper", "work"].map((kind) => `brig-${id}-${kind}`));
  });

  it.each<[string, string, Given, object]>([
    ["of a living process", "owner-alive", {}, {}],
    ["that are kept on request", "kept-on-request", { ...dead, leaseSeconds: 0 }, {}],
    ["of another machine", "other-machine", { ...dead, host: "vm-2" }, {}],
    ["with labels that cannot be read", "unreadable-labels", { labels: { "brig.created": "?" } }, {}],
    ["that no record names", "unrecorded", dead, { records: [] }],
  ])("%s stay", async (_, verdict, given, options) => {
    const engine = new FakeEngine([], volumes(given));
    const report = await swept(engine, { ...recorded, ...options });
    expect(report.volumes.map((one) => one.verdict)).toEqual([verdict, verdict, verdict]);
    expect(engine.removed).toEqual([]);
  });

  it("are no volumes that have only one of the two labels", async () => {
    const [one, other] = volumes(dead);
    if (one === undefined || other === undefined) throw new Error("no volumes");
    const { [LABELS.session]: _, ...unlabelled } = one.labels;
    const { "brig.tree": __, ...foreign } = other.labels;
    const engine = new FakeEngine(
      [],
      [
        { ...one, labels: unlabelled },
        { ...other, labels: foreign },
      ],
    );
    expect((await swept(engine, recorded)).volumes).toEqual([]);
    // Not even where an engine lists them.
    engine.listVolumes = async () => [{ ...one, labels: unlabelled }];
    expect((await swept(engine, recorded)).volumes).toEqual([
      { id: one.name, sessionId: null, verdict: "unreadable-labels", removed: false },
    ]);
    expect(engine.removed).toEqual([]);
  });

  it.each([`brig-${id}`, `x-brig-${id}-upper`, `brig-${id}x-upper`, "brig--upper"])(
    "stay under the name %s, which brig does not give them",
    async (name) => {
      const [one] = volumes(dead);
      if (one === undefined) throw new Error("no volumes");
      const engine = new FakeEngine([], [{ ...one, name }]);
      expect((await swept(engine, recorded)).volumes).toMatchObject([
        { verdict: "unrecorded", removed: false },
      ]);
      expect(engine.removed).toEqual([]);
    },
  );

  it("stay when only their label says whose they are, not their name", async () => {
    const engine = new FakeEngine([], volumes(dead, "precious"));
    expect((await swept(engine, recorded)).volumes).toMatchObject([{ verdict: "unrecorded" }, {}, {}]);
    expect(engine.removed).toEqual([]);
  });

  it("that are kept or have no record go when told to", async () => {
    const engine = new FakeEngine([], volumes({ ...dead, leaseSeconds: 0 }));
    await swept(engine, { ...recorded, records: [], includeKept: true, includeUnrecorded: true });
    expect(engine.removed).toHaveLength(3);
  });

  it("that a container uses stay, and the report says so", async () => {
    const inUse = `brig-${id}-merged`;
    const engine = new FakeEngine([], volumes(dead), [inUse]);
    const report = await swept(engine, recorded);
    expect(report.volumes[0]).toMatchObject({ id: inUse, removed: false, failure: `${inUse} is in use` });
  });

  it("are only reported on a dry run", async () => {
    const engine = new FakeEngine([], volumes(dead));
    await swept(engine, { ...recorded, dryRun: true });
    expect(engine.removed).toEqual([]);
  });
});
