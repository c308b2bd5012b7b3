import { describe, expect, it } from "vitest";
import { BrigError } from "../../../src/errors.js";
import { LABELS } from "../../../src/sandbox/labels.js";
import { REMOVABLE, type SweepOptions, type SweepVerdict } from "../../../src/sandbox/sweep.js";
import { container, FakeEngine, type Given, swept, volume } from "./swept-engine.js";

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
    ["whose owner has ended and recorded it", { pid: 999 }, "never-started", true],
    ["whose owner reads a large image", { ageSeconds: 7200 }, "owner-alive", false],
    ["of another machine, as its image may say", { pid: 999, host: "vm-2" }, "other-machine", false],
  ])("judges a container made for the files of its image, %s", async (_, given, ...rest) => {
    const labels = { [LABELS.imageFiles]: "" };
    const engine = new FakeEngine([container("c", { state: "created", labels, ...given })]);
    const [verdict, removed] = rest;
    const records = [{ sessionId: "s-c", containerId: null }];
    expect((await swept(engine, { records })).containers).toMatchObject([{ verdict, removed }]);
    expect(engine.removed).toEqual(removed ? ["c"] : []);
  });

  it("leaves a container that was made for the files of its image by another user", async () => {
    const labels = { [LABELS.imageFiles]: "" };
    const engine = new FakeEngine([container("c", { state: "created", labels, pid: 999 })]);
    expect((await swept(engine, { records: [] })).containers).toMatchObject([
      { verdict: "unrecorded", removed: false },
    ]);
    expect(engine.removed).toEqual([]);
  });

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
