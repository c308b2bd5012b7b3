import { passes } from "../../runs/results/attempt-outcome.js";
import type { AttemptResult } from "../../runs/results/attempt-result.js";

export interface AttemptProblem {
  /** An attempt without a score is an error, since it says nothing about the agent. */
  element: "failure" | "error";
  type: string;
  /** The first says it in short. They come from containers, too. */
  lines: string[];
}

/** Why an attempt did not pass; null if it did. */
export function problemOf(result: AttemptResult): AttemptProblem | null {
  if (passes(result)) return null;
  if (result.status === "scored") return { element: "failure", type: "reward", lines: failureLines(result) };
  const { failure, status } = result;
  const known = failure === null ? gradeMessages(result) : [failure.message, ...failure.evidence];
  const lines = known.length === 0 ? ["there is no grade"] : known;
  return { element: "error", type: failure?.class ?? status, lines };
}

function failureLines(result: AttemptResult): string[] {
  const failedTests = result.steps.flatMap(({ verification }) =>
    (verification?.tests ?? []).filter(({ status }) => status === "failed" || status === "error"),
  );
  return [
    `reward ${result.reward}`,
    ...result.steps.map(({ name, agent }) => `${name === null ? "" : `${name}: `}agent ${agent}`),
    ...gradeMessages(result),
    ...failedTests.map(({ name, status }) => `${status}: ${name}`),
  ];
}

function gradeMessages({ steps }: AttemptResult): string[] {
  return steps.flatMap(({ verification }) =>
    verification?.message == null ? [] : [`verifier: ${verification.message}`],
  );
}
