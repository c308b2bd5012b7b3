import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readdir } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type HostProcesses, type Owner, ownerOf, readHostProcesses } from "../../src/lib/owner.js";
import type { ContainerBody, Engine, Mount } from "../../src/sandbox/docker/engine-types.js";
import { sessionLabels } from "../../src/sandbox/labels.js";
import { reclaimPlaceholders } from "../../src/sandbox/sandbox-records.js";
import { type SweepOptions, sweep } from "../../src/sandbox/sweep.js";
import { containerBody } from "../support/container-body.js";
import { testEngine } from "../support/engine.js";
import { temporaryDirectory } from "../support/sandbox.js";
import { testLabel, testLabels } from "../support/test-run.js";

const image = "brig/base";
let engine: Engine;
let processes: HostProcesses;
let me: Owner;
let dead: Owner;
let made: string[];
let volumes: string[];

beforeAll(async () => {
  engine = await testEngine();
  processes = await readHostProcesses(hostname());
  me = await ownerOf(process.pid, processes);
  dead = await deadOwner();
});
beforeEach(() => {
  made = [];
  volumes = [];
});
afterEach(async () => {
  for (const id of made) await engine.removeContainer(id);
  for (const name of volumes) await engine.removeVolume(name);
});

async function deadOwner(): Promise<Owner> {
  const child = spawn("sleep", ["60"]);
  const owner = await ownerOf(child.pid ?? 0, processes);
  const ended = once(child, "exit");
  child.kill("SIGKILL");
  await ended;
  return owner;
}

interface Given {
  owner: Owner;
  leaseSeconds?: number;
  ageSeconds?: number;
  isStarted?: boolean;
  labels?: Record<string, string>;
  volume?: string;
}

async function container(name: string, given: Given): Promise<string> {
  const { owner, leaseSeconds = 60, ageSeconds = 0, isStarted = true, labels = {}, volume } = given;
  const createdAt = new Date(Date.now() - ageSeconds * 1000);
  const mark = sessionLabels({ sessionId: name, version: "0.0.0", owner, createdAt, leaseSeconds });
  const id = await engine.createContainer(sleeper({ ...mark, ...labels, ...testLabels() }, volume));
  made.push(id);
  if (isStarted) await engine.startContainer(id);
  return id;
}

function sleeper(labels: Record<string, string>, volume?: string): ContainerBody {
  const mounts: Mount[] =
    volume === undefined ? [] : [{ Type: "volume", Source: volume, Target: "/v", ReadOnly: true }];
  return containerBody(image, ["sleep", "300"], {
    Labels: labels,
    host: { AutoRemove: true, ReadonlyRootfs: true, CapDrop: ["ALL"], Mounts: mounts },
  });
}

/** Other runs share the engine: only what this test made is swept. */
async function sweepMine(options: Partial<SweepOptions> = {}) {
  const [value] = Object.values(testLabels());
  const own = `${testLabel}=${value}`;
  const mine = {
    ...engine,
    listContainers: async (labels: string[]) =>
      (await engine.listContainers([...labels, own])).filter(({ id }) => made.includes(id)),
    listVolumes: async (labels: string[]) => await engine.listVolumes([...labels, own]),
    removeContainer: (id: string) => engine.removeContainer(id),
    removeVolume: (name: string) => engine.removeVolume(name),
  };
  return await sweep(mine, { now: new Date(), processes, records: [], includeUnrecorded: true, ...options });
}

async function isThere(id: string): Promise<boolean> {
  const containers = await engine.listContainers([testLabel]);
  return containers.some((one) => one.id === id);
}

describe("a sweep of the real engine", () => {
  it("removes what dead owners left and leaves everything else", async () => {
    const doomed = {
      running: await container("running", { owner: dead }),
      neverStarted: await container("never-started", { owner: me, isStarted: false, ageSeconds: 120 }),
      earlierBoot: await container("earlier-boot", { owner: { ...me, bootId: "another" } }),
    };
    const spared = {
      mine: await container("mine", { owner: me }),
      starting: await container("starting", { owner: me, isStarted: false }),
      kept: await container("kept", { owner: dead, leaseSeconds: 0 }),
      foreign: await container("foreign", { owner: { ...dead, host: "another" } }),
    };
    const rehearsal = await sweepMine({ dryRun: true });
    expect(rehearsal.containers.filter(({ removed }) => removed)).toEqual([]);
    for (const id of made) expect(await isThere(id)).toBe(true);

    const { containers } = await sweepMine();
    const removed = containers.filter((one) => one.removed).map(({ id }) => id);
    expect(removed.toSorted()).toEqual(Object.values(doomed).toSorted());
    for (const id of Object.values(spared)) expect(await isThere(id)).toBe(true);
    await expect
      .poll(async () => await Promise.all(Object.values(doomed).map(isThere)))
      .toEqual([false, false, false]);
  });

  it("may race another sweep, and both end well", async () => {
    await container("one", { owner: dead });
    await container("two", { owner: dead });
    const reports = await Promise.all([sweepMine(), sweepMine()]);
    for (const { containers } of reports) for (const { removed } of containers) expect(removed).toBe(true);
  });

  it("believes no label that an image may have made", async () => {
    await using directory = await temporaryDirectory();
    const placeholder = join(directory.path, ".git");
    await mkdir(placeholder, { mode: 0o555 });
    const id = await container("masked", {
      owner: dead,
      labels: { "brig.placeholders": JSON.stringify([placeholder]) },
    });
    const { containers } = await sweepMine({ includeUnrecorded: false });
    expect(containers).toMatchObject([{ id, verdict: "unrecorded", removed: false }]);
    await reclaimPlaceholders(engine, { brigHome: join(directory.path, "home"), processes });
    expect(await readdir(directory.path)).toEqual([".git"]);
    expect(await isThere(id)).toBe(true);
  });

  it("takes no old container for one that filled a toolbox because a label says so", async () => {
    const label = `brig.test-filler-${process.pid}`;
    const id = await engine.createContainer(sleeper({ ...testLabels(), [label]: "1" }));
    made.push(id);
    const later = { now: new Date(Date.now() + 3_600_000), toolbox: { label, hash: "1" } };
    const cautious = await sweepMine({ ...later, includeUnrecorded: false });
    expect(cautious.containers).toMatchObject([{ id, verdict: "unrecorded", removed: false }]);
    expect(await isThere(id)).toBe(true);
    const told = await sweepMine(later);
    expect(told.containers).toMatchObject([{ id, verdict: "never-started", removed: true }]);
    await expect.poll(() => isThere(id)).toBe(false);
  });

  it("removes toolboxes that nobody uses, and those in use stay whole", async () => {
    const label = `brig.test-toolbox-${process.pid}`;
    for (const [name, hash] of [
      ["used", "1"],
      ["used-complete", "1"],
      ["unused", "2"],
      ["current", "3"],
    ] as const) {
      await engine.createVolume(`${label}-${name}`, { ...testLabels(), [label]: hash });
      volumes.push(`${label}-${name}`);
    }
    await container("user", { owner: me, volume: `${label}-used` });
    const report = await sweepMine({ toolbox: { label, hash: "3" } });
    expect(
      report.volumes.map(({ id, verdict, removed }) => [id.slice(label.length + 1), verdict, removed]),
    ).toEqual([
      ["used", "in-use", false],
      ["used-complete", "in-use", false],
      ["unused", "stale-toolbox", true],
    ]);
    expect(await engine.inspectVolume(`${label}-unused`)).toBeNull();
    expect(await engine.inspectVolume(`${label}-used`)).not.toBeNull();
  });

  it("removes caches of MCP servers that nobody uses, and no new one", async () => {
    const cacheLabel = `brig.test-cache-${process.pid}`;
    for (const name of ["used", "unused"]) {
      await engine.createVolume(`${cacheLabel}-${name}`, {
        ...testLabels(),
        [cacheLabel]: "MCP server docs",
      });
      volumes.push(`${cacheLabel}-${name}`);
    }
    await container("user", { owner: me, volume: `${cacheLabel}-used` });
    expect((await sweepMine({ cacheLabel })).volumes).toEqual([]);
    const later = { now: new Date(Date.now() + 3_600_000), cacheLabel };
    const report = await sweepMine(later);
    expect(report.volumes.map(({ id, verdict }) => [id.slice(cacheLabel.length + 1), verdict])).toEqual(
      expect.arrayContaining([
        ["used", "cache-in-use"],
        ["unused", "unused-cache"],
      ]),
    );
    expect(await engine.inspectVolume(`${cacheLabel}-unused`)).toBeNull();
    expect(await engine.inspectVolume(`${cacheLabel}-used`)).not.toBeNull();
  });
});
