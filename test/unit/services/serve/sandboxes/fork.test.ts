import { afterEach, beforeEach, expect, it } from "vitest";
import { BrigError } from "../../../../../src/errors.js";
import type { Sandbox } from "../../../../../src/sandbox/sandbox.js";
import { Capacity } from "../../../../../src/services/serve/sandboxes/capacity.js";
import { SandboxSet } from "../../../../../src/services/serve/sandboxes/sandbox-set.js";
import type { OpenedPlace } from "../../../../../src/services/serve/sandboxes/served-sandbox.js";

let openCount: number;
/** Starts of forks that fail, by their numbers. */
let failing: Set<number>;
let startCount: number;
let sandboxes: SandboxSet;
let capacity: Capacity;
const { signal } = new AbortController();

beforeEach(() => {
  [openCount, startCount, failing] = [0, 0, new Set()];
  capacity = new Capacity({ maxPlaces: 4, maxPerClient: 4, maxWaiting: 0 });
  sandboxes = new SandboxSet({
    capacity,
    open: async ({ workspaceKind }) => opened(workspaceKind === "overlay"),
    ...{ idleMs: 60_000, maxLifeMs: 60_000 },
    onWarning: (error) => {
      throw error;
    },
  });
});
afterEach(async () => await sandboxes.close());

function opened(hasWorkspace: boolean): OpenedPlace {
  openCount++;
  let isOpen = true;
  return {
    // Nothing runs in it.
    sandbox: {} as Sandbox,
    ...{ image: "image", mode: "workspace-write", task: null, instruction: null, workingDirectory: "/w" },
    ...{ grade: null, onEnding: null, network: "none" },
    ...(hasWorkspace && {
      fork: async () => {
        if (failing.has(++startCount)) throw new BrigError("no", { code: "engine.failed" });
        return opened(true);
      },
    }),
    async close() {
      if (isOpen) openCount--;
      isOpen = false;
      return null;
    },
  };
}

it("each fork has a place and an id of its own, and the times of the sandbox", async () => {
  const { id, idleMs } = await sandboxes.create(
    "one",
    { workspaceKind: "overlay", idleMs: 1000 },
    { signal },
  );
  const forks = await sandboxes.fork("one", { id, count: 3, signal });
  expect(new Set([id, ...forks.map((fork) => fork.id)]).size).toBe(4);
  expect(forks.map((fork) => fork.idleMs)).toEqual([idleMs, idleMs, idleMs]);
  expect(capacity.takenCount).toBe(4);
  expect(sandboxes.of("one")).toHaveLength(4);
  expect(sandboxes.of("other")).toEqual([]);
});

it("no fork is begun for which there is no place, and the places are free again", async () => {
  const { id } = await sandboxes.create("one", { workspaceKind: "overlay" }, { signal });
  await expect(sandboxes.fork("one", { id, count: 4, signal })).rejects.toMatchObject({ status: 429 });
  expect([startCount, capacity.takenCount]).toEqual([0, 1]);
});

it("if one fails to start, the others are removed", async () => {
  const { id } = await sandboxes.create("one", { workspaceKind: "overlay" }, { signal });
  failing.add(2);
  await expect(sandboxes.fork("one", { id, count: 3, signal })).rejects.toMatchObject({
    code: "engine.failed",
  });
  expect([openCount, capacity.takenCount]).toEqual([1, 1]);
});

it("those of a client that has gone meanwhile are removed", async () => {
  const { id } = await sandboxes.create("one", { workspaceKind: "overlay" }, { signal });
  const gone = new AbortController();
  const forking = sandboxes.fork("one", { id, count: 2, signal: gone.signal });
  gone.abort(new Error("the client has gone"));
  await expect(forking).rejects.toThrow("the client has gone");
  expect([openCount, capacity.takenCount]).toEqual([1, 1]);
});

it("a sandbox without a workspace has no forks, and neither has that of another client", async () => {
  const { id } = await sandboxes.create("one", {}, { signal });
  await expect(sandboxes.fork("one", { id, count: 1, signal })).rejects.toMatchObject({
    code: "usage.invalid",
  });
  await expect(sandboxes.fork("other", { id, count: 1, signal })).rejects.toMatchObject({
    code: "serve.unknown",
  });
});
