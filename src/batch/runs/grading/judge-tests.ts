import { formatBytes } from "../../../lib/bytes.js";
import { formatDuration } from "../../../lib/time/durations.js";
import type { StoppedSandbox } from "../../../sandbox/index.js";
import { invalidReasons } from "../../tasks/parsers/grade.js";
import { gradeParsedOutput } from "../../tasks/parsers/grade-parsed-output.js";
import { gradeSweBench } from "../../tasks/parsers/grade-swe-bench.js";
import type { TaskCheck } from "../../tasks/task.js";
import { describeExceeded } from "../attempt/disk-watch.js";
import type { TimeTaken } from "../processors/extended-limit.js";
import { mainReward } from "./parse-rewards.js";
import { readRewardFiles } from "./reward-files.js";
import { PARSED_OUTPUT_BYTES, type TestsRun } from "./run-tests.js";
import type { Verification } from "./verification.js";

const outputIsCut = `the tests printed more than the ${formatBytes(PARSED_OUTPUT_BYTES)} that are read, so not all of their results are known`;

export type Judged = Omit<Verification, "mode" | "findings" | "notes" | "confirmation">;

/** Turns what the tests left behind into rewards. `stop` is called before a file of the container is read. */
export async function judgeTests(
  stop: () => Promise<StoppedSandbox>,
  { check, run, uid }: { check: TaskCheck; run: TestsRun; uid: number },
): Promise<Judged> {
  const { exitCode, period, time } = run;
  const none = { exitCode, tests: null, time };
  if (run.isTimedOut) return { ...none, rewards: null, verifier: "timed-out", message: timeIsOver(time) };
  if (run.diskExceeded !== null) {
    const message = describeExceeded("the tests'", run.diskExceeded);
    return { ...none, rewards: null, verifier: "no-reward", message };
  }
  if (check.kind === "command")
    return { ...none, rewards: { reward: exitCode === 0 ? 1 : 0 }, verifier: "scored", message: null };
  if (check.kind === "reward-files") {
    if (period === null) throw new TypeError("reward files are judged by when they were written");
    return { ...none, ...withMainReward(await readRewardFiles(await stop(), { uid, ...period })) };
  }
  // The part of the output that is missing may name a test that failed.
  if (run.isOutputCut && check.kind === "parsed-output")
    return { ...none, rewards: null, verifier: "no-reward", message: outputIsCut };
  const grade =
    check.kind === "swe-bench"
      ? gradeSweBench(run.output, check)
      : gradeParsedOutput(run.output, check.parser);
  if (grade.kind === "invalid")
    return { ...none, rewards: null, verifier: "no-reward", message: invalidReasons[grade.reason] };
  const rewards = { reward: grade.isResolved ? 1 : 0 };
  // Tests that are not named count as failed here.
  const message = run.isOutputCut && !grade.isResolved ? outputIsCut : null;
  return { exitCode, time, rewards, verifier: "scored", message, tests: [...grade.tests] };
}

function timeIsOver({ extendedMs }: TimeTaken): string {
  const more =
    extendedMs === 0 ? "" : `, extended by ${formatDuration(extendedMs)} for waiting for a processor`;
  return `the tests did not end in their time${more}`;
}

type FoundRewards = Pick<Verification, "rewards" | "verifier" | "message">;

function withMainReward(found: FoundRewards): FoundRewards {
  if (found.rewards === null || mainReward(found.rewards) !== null) return found;
  return {
    rewards: null,
    verifier: "invalid-reward",
    message: 'reward.json has several rewards, and none of them is "reward"',
  };
}
