import { expect, it } from "vitest";
import { shownTrajectory, staticLimits } from "../../../../src/batch/report/view/attempt-detail.js";

it("a step with hundreds of thousands of calls is shown in part, and says so", () => {
  const ids = Array.from({ length: 200_000 }, (_, number) => String(number));
  const step = {
    source: "agent",
    tool_calls: ids.map((id) => ({ tool_call_id: id, function_name: "f", arguments: {} })),
    observation: {
      results: ids.toReversed().map((id) => ({
        source_call_id: id,
        extra: Object.fromEntries(ids.slice(0, id === "199999" ? 1000 : 0).map((name) => [name, 1])),
      })),
    },
  };
  const shown = shownTrajectory(JSON.stringify({ steps: [step] }), staticLimits.trajectory);
  const [first] = shown.kind === "steps" ? shown.steps : [];
  // The results of the calls that are shown are not among those that are.
  expect(first?.calls).toHaveLength(2000);
  expect(first?.facts).toEqual([
    { name: "calls left out", value: "199000" },
    { name: "results left out", value: "199000" },
  ]);
  expect(first?.calls[1000]?.facts).toHaveLength(20);
});
