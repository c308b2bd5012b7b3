import { isIPv4 } from "node:net";
import {
  allowsAnyProtocol,
  HOST_NAME,
  type HostPattern,
  matchesName,
  patternsOf,
  rangesContain,
} from "../../policy/hosts.js";
import type { Denial } from "./denial.js";
import { type AddressScope, scopeOf, type Target } from "./target.js";

export interface EgressRule {
  /** Spelled as in the allow-list, for example `@npm`. */
  origin: string;
  pattern: HostPattern;
}

export function rulesOf(hosts: readonly string[]): EgressRule[] {
  return hosts.flatMap((origin) => patternsOf(origin).map((pattern) => ({ origin, pattern })));
}

export type TargetDecision =
  /** `anyProtocol`: not only HTTP and TLS. */
  { kind: "allowed"; rule: string; anyProtocol: boolean } | { kind: "denied"; denial: Denial };

/** Asked only where it matters, because the answer takes as long as a short request. */
export type OwnAddresses = () => readonly string[];

/** Asks once, and gives the same answer for one decision, or for all of one change. */
export function onceAsked(ask: OwnAddresses): OwnAddresses {
  let answer: readonly string[] | null = null;
  return () => {
    answer ??= ask();
    return answer;
  };
}

export interface Endpoint {
  target: Target;
  port: number;
}

/** Decides by the name alone, so that nothing is looked up for a name that is not allowed. */
export function decideTarget(
  rules: readonly EgressRule[],
  { target, port }: Endpoint,
  ownAddresses: OwnAddresses,
): TargetDecision {
  const matching = rules.filter(
    ({ pattern }) => matchesPort(pattern, port) && matchesTarget(pattern, target),
  );
  const [first] = matching;
  if (first === undefined) return { kind: "denied", denial: { kind: "no-rule" } };
  if (target.kind === "address") {
    const denial = decideAddress(rules, { target, port, address: target.address, ownAddresses });
    if (denial !== null) return { kind: "denied", denial };
  }
  const free = matching.find(({ pattern }) => allowsAnyProtocol(pattern));
  return { kind: "allowed", rule: (free ?? first).origin, anyProtocol: free !== undefined };
}

/** Whether an entry of an allow-list, in its normal spelling, is for this endpoint. */
export function coversEndpoint(entry: string, { target, port }: Endpoint): boolean {
  return patternsOf(entry).some((pattern) => matchesPort(pattern, port) && matchesTarget(pattern, target));
}

/** The ports on which a name can be connected to without a proxy. */
export function portsOf(rules: readonly EgressRule[], name: string): number[] {
  const matching = rules.filter(({ pattern }) => matchesName(pattern, name));
  return [
    ...new Set(matching.flatMap(({ pattern }) => (pattern.port === null ? [80, 443] : [pattern.port]))),
  ];
}

/**
 * Decides about an address that is about to be dialled for a target whose name is allowed. Null allows it. An
 * address that is not public needs a rule for it or its range. For the addresses of this machine and of metadata
 * services a rule has to name the very address, since a range is easily wider than meant.
 */
export function decideAddress(
  rules: readonly EgressRule[],
  { target, port, address, ownAddresses }: Endpoint & { address: string; ownAddresses: OwnAddresses },
): Denial | null {
  if (target.kind === "name" && target.name === HOST_NAME) return null;
  const general = scopeOf(address);
  const scope = general !== "loopback" && ownAddresses().includes(address) ? "own" : general;
  if (scope === "public") return null;
  const ranges = rules.flatMap(({ pattern }) =>
    pattern.kind === "range" && matchesPort(pattern, port) ? [pattern.range] : [],
  );
  const single = isIPv4(address) ? 32 : 128;
  const naming = needsExactRule.has(scope) ? ranges.filter(({ prefix }) => prefix === single) : ranges;
  return rangesContain(naming, address) ? null : { kind: "address", address, scope };
}

/** Whether an entry has the address or its range, and not only every public host. */
export function namesAddress(rules: readonly EgressRule[], { target, port }: Endpoint): boolean {
  return rules.some(
    ({ pattern }) => pattern.kind === "range" && matchesPort(pattern, port) && matchesTarget(pattern, target),
  );
}

const needsExactRule: ReadonlySet<AddressScope | "own"> = new Set(["own", "metadata", "loopback"]);

function matchesPort(pattern: HostPattern, port: number): boolean {
  return pattern.port === null || pattern.port === port;
}

function matchesTarget(pattern: HostPattern, target: Target): boolean {
  if (target.kind === "name") return matchesName(pattern, target.name);
  if (pattern.kind === "public") return true;
  return pattern.kind === "range" && rangesContain([pattern.range], target.address);
}
