import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { readSessionLines } from "../../../../../src/agent/session/read/session-lines.js";
import { changingSteps } from "../../../../../src/agent/session/read/session-steps.js";

let folder = "";

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "brig-steps-"));
});

afterEach(() => {
  rmSync(folder, { recursive: true });
});

const call = (id: string) => ({ type: "function_call", call_id: id, name: "exec_command", arguments: "{}" });
const output = (id: string) => ({ type: "function_call_output", call_id: id, output: "" });
const message = (text: string) => ({
  type: "message",
  role: "user",
  content: [{ type: "input_text", text }],
});
const point = (id: string, number: number, path = "a") => ({
  call_id: id,
  snapshot: "t",
  point: number,
  count: 1,
  changes: [{ path, change: "added" }],
});

async function listed(records: (readonly [string, object])[]) {
  const path = join(folder, "session.jsonl");
  const meta = ["session_meta", { id: "s" }] as const;
  const lines = [meta, ...records].map(([type, payload]) => `${JSON.stringify({ type, payload })}\n`);
  writeFileSync(path, lines.join(""));
  const steps: [number, string | null, number][] = [];
  for await (const { step, call: made, point: left } of changingSteps(readSessionLines(path)))
    steps.push([step, made?.callId ?? null, left.number]);
  return steps;
}

it("calls that left restore points are listed by step, those of one response as they ended", async () => {
  const steps = await listed([
    ["response_item", message("go")],
    ["response_item", call("c1")],
    ["response_item", call("c2")],
    ["response_item", call("c3")],
    ["brig.restore_point", point("c2", 1)],
    ["brig.restore_point", point("c1", 2)],
    ["response_item", output("c1")],
    ["response_item", output("c2")],
    ["response_item", output("c3")],
    ["response_item", call("c4")],
    ["response_item", output("c4")],
    ["brig.restore_point", point("c4", 3)],
  ]);
  expect(steps).toEqual([
    [2, "c2", 1],
    [2, "c1", 2],
    [3, "c4", 3],
  ]);
});

it("what the user has undone is a step of its own", async () => {
  const steps = await listed([
    ["response_item", call("c1")],
    ["response_item", output("c1")],
    ["brig.restore_point", point("c1", 1)],
    ["brig.undo", { snapshot: "t", point: 2, undone: 1, restores: 0, count: 1, changes: [] }],
    ["response_item", message("<workspace_state>\nundone\n</workspace_state>")],
    ["response_item", message("go on")],
  ]);
  expect(steps).toEqual([
    [1, "c1", 1],
    [2, null, 2],
  ]);
});

it("records of another form, or of calls that there are not, are ignored", async () => {
  const steps = await listed([
    ["response_item", call("c1")],
    ["brig.restore_point", { ...point("c1", 1), changes: "a" }],
    ["brig.restore_point", point("c9", 1)],
    ["brig.undo", { snapshot: 1 }],
    ["response_item", output("c1")],
    ["response_item", message("go on")],
  ]);
  expect(steps).toEqual([]);
});
