import { describe, expect, it } from "vitest";
import { passKindOf, passRestsOn } from "../../../../../src/batch/runs/results/attempt-outcome.js";
import type { AttemptResult, Confirmation } from "../../../../../src/batch/runs/results/attempt-result.js";
import { playedResult } from "../../../../support/played-attempts.js";

const confirmation = (given: Partial<Confirmation>): Confirmation => ({
  outcome: "clean",
  paths: [],
  isSmallest: true,
  gradings: 1,
  message: null,
  ...given,
});

function resultOf(...steps: ["separate" | "shared", Confirmation | null][]): AttemptResult {
  return playedResult({
    reward: 1,
    steps: steps.map(([mode, own]) => ({
      name: null,
      agent: "completed",
      agentMessage: null,
      rewards: { reward: 1 },
      verification: {
        ...{ mode, verifier: "scored", message: null, exitCode: 0, tests: null },
        ...{ findings: [], notes: [], confirmation: own },
      },
    })),
  });
}

describe("how an attempt passed", () => {
  const outside = confirmation({ outcome: "outside", paths: ["/root/.x", "/srv/y"] });

  it("is said by the least of its steps", () => {
    const clean = confirmation({});
    const unknown = confirmation({ outcome: "unknown" });
    expect(passKindOf(resultOf(["separate", null]))).toBe("separate");
    expect(passKindOf(resultOf(["separate", null], ["shared", clean]))).toBe("shared");
    expect(passKindOf(resultOf(["shared", clean], ["shared", unknown]))).toBe("shared-unconfirmed");
    expect(passKindOf(resultOf(["shared", outside], ["shared", unknown]))).toBe("shared-outside");
    expect(passKindOf(resultOf(["shared", null]))).toBe("shared-unconfirmed");
    expect(passKindOf({ ...resultOf(["shared", clean]), reward: 0.5 })).toBeNull();
  });

  it("names what it rests on besides the work", () => {
    expect(passRestsOn(resultOf(["shared", outside]))).toEqual(["/root/.x", "/srv/y"]);
    const running = confirmation({ outcome: "outside", message: "it rests on what ran" });
    expect(passRestsOn(resultOf(["shared", running]))).toEqual(["it rests on what ran"]);
    expect(passRestsOn(resultOf(["shared", confirmation({})]))).toEqual([]);
  });
});
