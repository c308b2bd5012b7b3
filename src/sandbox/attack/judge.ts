import type { Kernel } from "../plan/plan.js";
import type { Policy } from "../policy/policy.js";
import { type Attempt, controlSucceeded, isRefused } from "./attempts/attempt.js";
import { gvisorDifferences } from "./attempts/gvisor-differences.js";
import { permissionFor } from "./attempts/permissions.js";
import type { Outcomes } from "./outcomes.js";

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
