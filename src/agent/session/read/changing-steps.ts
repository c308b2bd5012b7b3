import type { SessionRestorePoint } from "../restore-point.js";
import type { SessionLine } from "./session-lines.js";
import { type StepCall, stepsOf } from "./session-steps.js";

/** A step of a session that left a restore point of its copy-on-write workspace. */
export interface ChangingStep {
  /** The number of the step, as `brig sessions show` prints it. */
  step: number;
  /** The call that changed the workspace; null if the user has undone a call. */
  call: StepCall | null;
  point: SessionRestorePoint;
}

/** The steps of a session that left restore points, one for each call, in order. */
export async function* changingSteps(lines: AsyncIterable<SessionLine>): AsyncIterable<ChangingStep> {
  for await (const step of stepsOf(lines)) {
    if (step.source !== "agent") {
      if (step.undo !== null) yield { step: step.number, call: null, point: step.undo };
      continue;
    }
    const left = step.calls.flatMap((call) => (call.point === null ? [] : [{ call, point: call.point }]));
    // Calls that ran at the same time may have ended in another order.
    for (const each of left.toSorted((a, b) => a.point.number - b.point.number))
      yield { step: step.number, ...each };
  }
}
