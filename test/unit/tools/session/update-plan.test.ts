import { describe, expect, it } from "vitest";
import { createToolRegistry } from "../../../../src/tools/registry.js";
import type { ToolActivity } from "../../../../src/tools/tool.js";
import { MemorySandbox } from "../../../support/memory-sandbox.js";

const tool = createToolRegistry(new MemorySandbox(), { cwd: "/" }).get("update_plan" as string);
const plan = [
  { step: "look", status: "completed" },
  { step: "change", status: "in_progress" },
  { step: "test", status: "in_progress" },
];

async function update(args: object) {
  const activities: ToolActivity[] = [];
  const output = await tool.execute(args, { onActivity: (activity) => activities.push(activity) });
  return { output, activities };
}

describe("update_plan", () => {
  it("hands the plan to whoever follows, and says that it is updated", async () => {
    expect(await update({ plan, explanation: "because" })).toEqual({
      output: { content: "Plan updated", success: true },
      activities: [{ kind: "plan-updated", explanation: "because", steps: plan }],
    });
  });

  it("needs neither an explanation nor a step", async () => {
    expect((await update({ plan: [] })).activities).toEqual([
      { kind: "plan-updated", explanation: null, steps: [] },
    ]);
  });

  it.each([
    [{}, "missing field `plan`"],
    [{ plan, mood: "good" }, 'Unrecognized key: "mood"'],
    [{ plan: [{ ...plan[0], note: "x" }] }, '`plan.0`: Unrecognized key: "note"'],
    [
      { plan: [{ step: "x", status: "done" }] },
      '`plan.0.status`: Invalid option: expected one of "pending"|"in_progress"|"completed"',
    ],
    [{ plan: [{ status: "pending" }] }, "missing field `step`"],
  ])("refuses %j", async (args, reason) => {
    await expect(update(args)).rejects.toMatchObject({
      code: "tool.invalid-input",
      message: typeof reason === "string" ? `failed to parse function arguments: ${reason}` : reason,
    });
  });
});
