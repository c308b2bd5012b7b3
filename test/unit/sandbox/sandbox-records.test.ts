import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { BrigError } from "../../../src/errors.js";
import { ownerOf, readHostProcesses } from "../../../src/lib/owner.js";
import { RefusedRequest } from "../../../src/sandbox/docker/engine-failure.js";
import { reclaimPlaceholders, recordedNow, writeRecord } from "../../../src/sandbox/sandbox-records.js";
import { temporaryFolder } from "../../support/batch-runs.js";

const id = (last: number) => `00000000-0000-4000-8000-00000000000${last}`;

it("only what is a record is read of what is among the records", async () => {
  const home = await temporaryFolder();
  const owner = { pid: process.pid, startedAt: null, bootId: null, host: "here" };
  const record = { sessionId: id(1), owner, endpoint: "unix:///e", containerId: null, placeholders: [] };
  writeRecord(home, record);
  const folder = join(home, "sandboxes");
  execFileSync("mkfifo", [join(folder, `1.${id(2)}.json`)]);
  await mkdir(join(folder, `1.${id(3)}.json`));
  await writeFile(join(folder, `1.${id(4)}.json`), "{");
  await writeFile(join(folder, "other.json"), JSON.stringify({ ...record, sessionId: id(5) }));
  expect(recordedNow(home)).toEqual([record]);
});

async function ended() {
  const child = spawn("sleep", ["60"]);
  const owner = await ownerOf(child.pid ?? 0, await readHostProcesses(hostname()));
  child.kill("SIGKILL");
  await once(child, "exit");
  return owner;
}

const ofLease = (leaseSeconds: number) => ({
  "brig.session": id(1),
  "brig.host": "here",
  "brig.owner-pid": "1",
  "brig.created": new Date().toISOString(),
  "brig.lease": String(leaseSeconds),
});

const refused = new BrigError("cannot remove the container", {
  code: "engine.failed",
  cause: new RefusedRequest(500, "busy"),
});

interface Left {
  states: Record<string, string>;
  leaseSeconds?: number;
  fails?: Error;
}

it.each<[string, Left, string[], number]>([
  ["and the record goes with it", { states: { one: "created" } }, ["one"], 0],
  ["also if it was started and has ended", { states: { one: "exited" } }, ["one"], 0],
  ["but not what only says that it belongs to the session", { states: { two: "exited" } }, [], 0],
  ["but not one that was to be kept", { states: { one: "exited" }, leaseSeconds: 0 }, [], 1],
  [
    "also one that was to be kept, if it was never started",
    { states: { one: "created" }, leaseSeconds: 0 },
    ["one"],
    0,
  ],
  [
    "also one that works on the tree of the session",
    { states: { one: "created", two: "created" } },
    ["one", "two"],
    0,
  ],
  ["but not one that runs", { states: { one: "running" } }, [], 1],
  ["but one that is paused goes on until its lease is over", { states: { one: "paused" } }, ["on: one"], 1],
  ["but not one that was to be kept, and is paused", { states: { one: "paused" }, leaseSeconds: 0 }, [], 1],
  ["but the record stays if it cannot be removed", { states: { one: "created" }, fails: refused }, [], 1],
])(
  "a container of a killed process in which nothing runs is removed by the next start, %s",
  async (...given) => {
    const [, { states, leaseSeconds = 60, fails }, gone, recordsLeft] = given;
    const home = await temporaryFolder();
    const record = { sessionId: id(1), owner: await ended(), endpoint: "unix:///e" };
    writeRecord(home, { ...record, containerId: "one", placeholders: [] });
    const left = new Map(Object.entries(states));
    const removed: string[] = [];
    const engine = {
      endpoint: "unix:///e",
      listContainers: async (labels: string[]) => {
        expect(labels).toEqual([`brig.session=${id(1)}`]);
        return [...left].map(([id, state]) => ({ id, state, labels: ofLease(leaseSeconds) }));
      },
      inspectContainer: async () => (left.has("one") ? {} : null),
      removeContainer: async (id: string) => {
        if (fails !== undefined) throw fails;
        left.delete(id);
        removed.push(id);
      },
      unpauseContainer: async (id: string) => void removed.push(`on: ${id}`),
      listVolumes: async () => [],
      removeVolume: async () => undefined,
    } as unknown as Parameters<typeof reclaimPlaceholders>[0];
    await reclaimPlaceholders(engine, { brigHome: home, processes: await readHostProcesses(hostname()) });
    expect([removed, recordedNow(home).length]).toEqual([gone, recordsLeft]);
  },
);
