import type { Kernel } from "../plan/plan.js";
import type { Policy } from "../policy/policy.js";
import { type Attempt, controlSucceeded, isRefused, permissionFor } from "./attempt.js";
import type { Outcomes } from "./weak-twin.js";

/**
 * "held": it was refused. "failed": it succeeded. "allowed": it succeeded, and a setting of the policy permits it. "untried": it cannot
 * be tried here. "unjudged": it was refused, but also where nothing is protected, so that this proves nothing; or nothing came back.
 */
export type Verdict = "failed" | "unjudged" | "allowed" | "untried" | "held";

/** The outcome of one attempt, and the verdict on it. */
export interface Judgement {
  /** The id in the catalogue of assertions. */
  id: string;
  attempt: string;
  title: string;
  verdict: Verdict;
  /** The answer of the sandbox, such as "EPERM". */
  outcome: string;
  /** Every answer that was expected. */
  expected: readonly string[];
  /** The answer of the container without protection; null if it was not asked. */
  control: string | null;
  /** Why the verdict is not "held"; null if it is. */
  reason: string | null;
  /** Advice for the user; null if there is nothing to do. */
  advice: string | null;
}

interface Evidence {
  policy: Policy;
  kernel: Kernel;
  outcomes: Outcomes;
  /** The outcomes in the weak twin for each of its users; null if there was no twin. */
  control: { root: Outcomes; user: Outcomes } | null;
}

const UNTRIED = "untried: ";
const NO_ANSWER = "no answer";
/** There is nothing of the kind that could be opened. */
const NOTHING_THERE = "nothing";

export function judge(attempt: Attempt, evidence: Evidence): Judgement {
  const outcome = evidence.outcomes[attempt.attempt] ?? NO_ANSWER;
  const control = controlOutcome(attempt, evidence);
  const { id, title, refusals } = attempt;
  return {
    ...{ id, attempt: attempt.attempt, title, outcome, expected: refusals, control },
    ...verdictOn(attempt, { ...evidence, outcome, controlled: control }),
  };
}

function controlOutcome({ attempt, control: user = "root" }: Attempt, { control }: Evidence): string | null {
  if (control === null || typeof user === "object") return null;
  return control[user][attempt] ?? NO_ANSWER;
}

type Ruling = Pick<Judgement, "verdict" | "reason" | "advice">;

function verdictOn(
  attempt: Attempt,
  { policy, kernel, outcome, controlled }: Evidence & { outcome: string; controlled: string | null },
): Ruling {
  const permission = permissionFor(attempt, policy);
  const isUntried = outcome.startsWith(UNTRIED);
  if (permission !== null && (isUntried || succeeded(outcome)))
    return {
      verdict: "allowed",
      reason: `the policy says ${permission.setting}`,
      advice: `to have it refused: ${permission.instead}`,
    };
  const difference = kernel === "gvisor" ? gvisorDifferences[attempt.attempt] : undefined;
  if (difference?.outcome.test(outcome))
    return { verdict: difference.verdict, reason: difference.reason, advice: null };
  if (isUntried) return { verdict: "untried", reason: outcome.slice(UNTRIED.length), advice: null };
  if (kernel === "gvisor" && attempt.concernsKernel && outcome === NOTHING_THERE)
    return { verdict: "held", reason: null, advice: null };
  if (succeeded(outcome) && kernel === "gvisor" && attempt.concernsKernel)
    return { verdict: "allowed", reason: "the kernel is gVisor's own, and not the host's", advice: null };
  if (succeeded(outcome))
    return {
      verdict: "failed",
      reason: attempt.meaning,
      advice: "see what `brig doctor` says about this engine, and SECURITY.md about this promise",
    };
  if (!isRefused(attempt, outcome) && !isErrors(outcome))
    return {
      verdict: "unjudged",
      reason: outcome === NO_ANSWER ? "the attempt did not answer" : `the attempt ${outcome}`,
      advice: null,
    };
  if (controlled !== null && !controlSucceeded(attempt, controlled))
    return {
      verdict: "unjudged",
      reason: `it is refused without any protection as well (${controlled}), so the refusal proves nothing`,
      advice: "try it on an engine of this machine, as root; --no-control takes the refusal as it is",
    };
  return { verdict: "held", reason: null, advice: null };
}

function succeeded(outcome: string): boolean {
  return outcome === "done" || outcome.startsWith("found ");
}

/** Other errors than those that were expected are refusals as well: an image may lack what the attempt is made on. */
function isErrors(outcome: string): boolean {
  return outcome.split(" ").every((word) => /^E[A-Z0-9_]+$/.test(word));
}

/** An outcome of one attempt under gVisor that is no fault of the sandbox, because gVisor is made so. */
interface GvisorDifference {
  /** The whole outcome. Anything else is judged as everywhere. */
  outcome: RegExp;
  verdict: "allowed" | "untried";
  reason: string;
}

/** The differences by the name of the attempt; found with the release of July 2024. */
const gvisorDifferences: Readonly<Record<string, GvisorDifference>> = {
  "processes-without-limit": {
    outcome: /^untried: /,
    verdict: "untried",
    reason: "the limit, which the host's kernel enforces, is that of gVisor as a whole: all of it would stop",
  },
  "device-nodes": {
    outcome: /^found(?: \/dev\/(?:net\/tun|fuse))+$/,
    verdict: "allowed",
    reason: "gVisor has these devices in every container; they are its own, and not the host's",
  },
  "writable-places": {
    outcome: /^found \/dev$/,
    verdict: "allowed",
    reason: "gVisor ignores read-only paths, so that root may write to /dev, which is in memory",
  },
  "files-without-limit": {
    outcome: /^found(?: \/\S*)+$/,
    verdict: "allowed",
    reason:
      "gVisor has no limits of files in memory; they use its memory, which is limited unless it runs with --ignore-cgroups",
  },
  "memory-without-size": {
    outcome: /^found [0-9]+ MiB$/,
    verdict: "allowed",
    reason:
      "gVisor's own /dev has no size; its files use gVisor's memory, which is limited unless it runs with --ignore-cgroups",
  },
  "container-log": {
    outcome: /^done$/,
    verdict: "allowed",
    reason:
      "gVisor lets a command open the descriptors of the first process: it can disturb its own session, and there is no log",
  },
};
