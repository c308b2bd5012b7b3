import { describe, expect, it } from "vitest";
import { LABELS } from "../../../src/sandbox/labels.js";
import { container, FakeEngine, type Given, now, swept, volume } from "./swept-engine.js";

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

  it.each([
    ["stay", {}, ["t-mine"]],
    ["go only with a flag", { includeUnrecorded: true }, ["t-mine", "t-other"]],
  ])("that were made for another BRIG_HOME %s", async (_, options, removed) => {
    const made = (name: string, home: string) => {
      const { labels, ...rest } = volume(name, name);
      return { ...rest, labels: { ...labels, "brig.home": home } };
    };
    const engine = new FakeEngine([], [made("t-mine", "h1"), made("t-other", "h2")]);
    const home = { label: "brig.home", id: "h1" };
    const found = await swept(engine, { toolbox, home, ...options });
    expect(engine.removed).toEqual(removed);
    expect(found.volumes.find(({ id }) => id === "t-other")?.verdict).toBe(
      removed.includes("t-other") ? "stale-toolbox" : "unrecorded",
    );
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

  it("stay if they were made for another BRIG_HOME", async () => {
    const engine = new FakeEngine([], caches(), ["used"]);
    const home = { label: "brig.home", id: "h1" };
    const found = await swept(engine, { cacheLabel, home });
    expect(found.volumes.map(({ id, verdict }) => [id, verdict])).toEqual([
      ["unused", "unrecorded"],
      ["used", "unrecorded"],
    ]);
    expect(engine.removed).toEqual([]);
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
