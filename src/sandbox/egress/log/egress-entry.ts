import type { EgressAttempt, EgressPhase, EgressWay } from "../attempt.js";
import { describeDenial } from "../rules/denial.js";
import { shownHost } from "../rules/target.js";

/** One attempt to reach something, or several that are equal but for their times and sizes. */
export interface EgressEntry {
  /** When the first of the attempts began, in milliseconds since 1970. */
  startedAtMs: number;
  /** Number of attempts. */
  count: number;
  /** Phase in which they began. */
  phase: EgressPhase;
  /** The model's call whose processes made them; null if none did, or it is not known. */
  callId: string | null;
  /** Printable ASCII, like all texts from inside. Null if it is not known. */
  program: string | null;
  /** Null for attempts of various kinds, when there were too many kinds. Then the host is null, too. */
  way: EgressWay | null;
  /** At most 300 characters. */
  host: string | null;
  /** Null for a name that was only looked up. */
  port: number | null;
  /** Method of a request that brig can read. The path is without its query. */
  method: string | null;
  path: string | null;
  outcome: "allowed" | "denied" | "failed";
  /** Kind of a denial, such as "no-rule", or errno of a failure. Null for what was allowed. */
  reason: string | null;
  /** The reason in a sentence, or null. */
  message: string | null;
  /** The entry of the allow-list that allowed them. */
  rule: string | null;
  bytesOut: number;
  bytesIn: number;
  /** The sum of all of them. */
  durationMs: number;
}

export function entryOf(attempt: EgressAttempt): EgressEntry {
  const { startedAtMs, phase, way, port, method, path, rule, bytesOut, bytesIn, durationMs, owner } = attempt;
  const host = shownHost(attempt.host);
  return {
    ...{ startedAtMs, count: 1, phase, callId: owner?.callId ?? null, program: owner?.program ?? null },
    ...{ way, host, port, method: method && shownHost(method), path: path && shownHost(path) },
    ...reasonOf(attempt, port === null ? host : `${host}:${port}`),
    ...{ rule, bytesOut, bytesIn, durationMs },
  };
}

function reasonOf(
  { outcome }: EgressAttempt,
  host: string,
): Pick<EgressEntry, "outcome" | "reason" | "message"> {
  switch (outcome.kind) {
    case "allowed":
      return { outcome: "allowed", reason: null, message: null };
    case "denied": {
      const { denial } = outcome;
      return { outcome: "denied", reason: denial.kind, message: describeDenial(denial, host) };
    }
    case "failed":
      return {
        outcome: "failed",
        reason: outcome.errno,
        message: `${host} could not be reached: ${outcome.errno}`,
      };
    default:
      return outcome satisfies never;
  }
}
