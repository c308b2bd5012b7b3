import { describe, expect, it } from "vitest";
import { readPoint, WorkspaceReading } from "../../../../../src/agent/session/read/session-reader.js";

type Written = [name: string, payload: Readonly<Record<string, unknown>>];

function statesOf(...records: Written[]) {
  const reading = new WorkspaceReading();
  for (const [name, payload] of records) reading.add({ type: "brig", name, payload });
  return reading.result?.states ?? null;
}

const sandbox = (snapshot?: string): Written => ["sandbox", { id: "s", ...(snapshot && { snapshot }) }];
const point = (snapshot: string, number: number): Written => [
  "restore_point",
  { call_id: "c", snapshot, point: number, count: 1, changes: [{ path: "a", change: "added" }] },
];
const undo = (snapshot: string, number: number): Written => [
  "undo",
  { snapshot, point: number, undone: 1, restores: 0, count: 0, changes: [] },
];
const receipt = (snapshot: string): Written => ["receipt", { findings: [], changes: { snapshot, count: 1 } }];
const fork: Written = ["fork", { forked_from_id: "x", at_step: null }];

describe("the copy-on-write workspace of a recorded session", () => {
  it("is none for sandboxes with another workspace", () => {
    expect(statesOf(sandbox())).toBeNull();
    expect(statesOf(sandbox("t1"), point("t1", 1), sandbox())).toBeNull();
    expect(statesOf()).toBeNull();
  });

  it("is the last state of its own, which may be newer than its last record", () => {
    expect(statesOf(sandbox("t1"), point("t1", 1), point("t1", 2))).toEqual([
      { snapshot: "t1", point: null, isCertain: true },
    ]);
    expect(statesOf(sandbox("t1"))).toEqual([{ snapshot: "t1", point: null, isCertain: false }]);
    expect(statesOf(sandbox("t1"), receipt("t1"))).toEqual([
      { snapshot: "t1", point: null, isCertain: true },
    ]);
  });

  it("is for a copy the state that was copied, and not what the original did later", () => {
    expect(statesOf(sandbox("t1"), point("t1", 1), point("t1", 2), fork)).toEqual([
      { snapshot: "t1", point: 2, isCertain: true },
    ]);
    expect(statesOf(sandbox("t1"), point("t1", 2), undo("t1", 3), fork)).toEqual([
      { snapshot: "t1", point: 3, isCertain: true },
    ]);
    expect(statesOf(sandbox("t1"), fork)).toEqual([{ snapshot: "t1", point: 0, isCertain: false }]);
    // The original had ended.
    expect(statesOf(sandbox("t1"), point("t1", 1), receipt("t1"), fork)).toEqual([
      { snapshot: "t1", point: null, isCertain: true },
    ]);
  });

  it("is that of the run before if the last one has left none", () => {
    const states = statesOf(sandbox("t1"), point("t1", 4), fork, sandbox("t2"));
    expect(states).toEqual([
      { snapshot: "t2", point: null, isCertain: false },
      { snapshot: "t1", point: 4, isCertain: true },
    ]);
  });

  it("stays the same when the mode changes, and when a command leaves the sandbox", () => {
    const escalated: Written = ["sandbox", { id: "e", escalated: true }];
    expect(statesOf(sandbox("t1"), point("t1", 1), escalated, sandbox("t1"))).toEqual([
      { snapshot: "t1", point: null, isCertain: true },
    ]);
  });

  it("is nothing that a file of unknown origin names", () => {
    const foreign: Written = ["fork", { forked_from_id: "x", is_foreign: true }];
    expect(statesOf(sandbox("t1"), point("t1", 1), foreign)).toBeNull();
    expect(statesOf(sandbox("t1"), foreign, point("t1", 1), receipt("t1"))).toBeNull();
  });

  it.each<[string, Written]>([
    ["a point of a workspace that it did not have", point("other", 1)],
    ["a receipt of a workspace that it did not have", receipt("other")],
    ["a point without a number", ["restore_point", { call_id: "c", snapshot: "t1", count: 1, changes: [] }]],
    ["a negative number", ["restore_point", { snapshot: "t1", point: -1, count: 1, changes: [] }]],
    ["paths that are none", ["restore_point", { snapshot: "t1", point: 1, count: 1, changes: [1] }]],
    ["a receipt of another form", ["receipt", { changes: "t1" }]],
    ["an undo of another form", ["undo", { snapshot: { id: "t1" } }]],
    ["a kind of record that is unknown", ["restored", { snapshot: "t1", point: 7 }]],
  ])("is not changed by %s", (_what, record) => {
    expect(statesOf(sandbox("t1"), record, fork)).toEqual([{ snapshot: "t1", point: 0, isCertain: false }]);
  });

  it.each([
    [{ id: "s", snapshot: 7 }],
    [{ id: "s", snapshot: "" }],
    [{ id: "s", snapshot: "x".repeat(201) }],
  ])("is none for a sandbox record such as %j", (payload) => {
    expect(statesOf(["sandbox", payload])).toBeNull();
  });
});

it("a point with too many paths is not read", () => {
  const changes = Array.from({ length: 1001 }, () => ({ path: "a", change: "added" }));
  expect(readPoint({ snapshot: "t", point: 1, count: 1001, changes })).toBeNull();
  expect(readPoint({ snapshot: "t", point: 1, count: 1001, changes: changes.slice(0, 1000) })?.count).toBe(
    1001,
  );
});
