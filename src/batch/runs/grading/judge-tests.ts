import { type BrigError, isBrigError } from "../../../errors.js";
import { formatBytes } from "../../../lib/bytes.js";
import { formatDuration } from "../../../lib/time/durations.js";
import type { Engine, StoppedSandbox } from "../../../sandbox/index.js";
import { gradeParsedOutput, gradeSweBench, invalidReasons } from "../../tasks/parsers/grade.js";
import type { TaskCheck } from "../../tasks/task.js";
import { describeExceeded } from "../attempt/disk-watch.js";
import { explainFailure } from "../evidence.js";
import type { TimeTaken } from "../processors.js";
import { mainReward, readRewardFiles } from "./rewards.js";
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

interface JudgedContainer {
  engine: Engine;
  containerId: string;
  memoryLimitBytes: number;
  /** Whether the agent worked in it. Default: false. */
  isAgents?: boolean | undefined;
  signal?: AbortSignal | undefined;
}

/**
 * Grades failures that an agent can cause, so that they do not keep its attempt from a grade: artifacts that cannot be
 * put into a container, tests that are left no memory; in its own container, a file system from which nothing starts.
 */
export async function asAgentsFault(
  judge: () => Promise<Judged>,
  { engine, signal, isAgents = false, ...container }: JudgedContainer,
): Promise<Judged> {
  try {
    return await judge();
  } catch (error) {
    if (!isBrigError(error) || signal?.aborted) throw error;
    const failed = { error, stage: "verify", ...container } as const;
    const endedItself = async () => (await explainFailure(engine, failed))?.kind !== "infrastructure";
    const isOwn =
      error.code === "sandbox.gone"
        ? await endedItself()
        : couldBeCaused(error) || (isAgents && error.code === "policy.not-enforced");
    if (!isOwn) throw error;
    const message = `the tests could not run on what the agent left: ${error.message}`;
    return { rewards: null, verifier: "no-reward", message, exitCode: null, tests: null, time: null };
  }
}

function couldBeCaused({ code, errno }: BrigError): boolean {
  if (code === "engine.failed") return errno !== "ENOSPC" && errno !== "EDQUOT";
  return code === "exec.bad-cwd" || code === "protocol.invalid" || code.startsWith("file.");
}
