import { HOST_PRESETS } from "../../policy/hosts.js";
import { coversHost, describeNetwork } from "../../policy/network.js";
import { describeEndpoint, parseTarget } from "../rules/target.js";
import type { EgressEntry } from "./egress-entry.js";

/** One entry of a proposed allow-list, and what needed it. */
interface ProposedEntry {
  /** A preset, or a host with its port. */
  entry: string;
  /** The hosts that were reached, with their ports. */
  hosts: string[];
  /** The calls that reached them; empty if it is not known. */
  callIds: string[];
  programs: string[];
}

/** The smallest allow-list with which programs reach again what they reached. */
export interface Proposal {
  /** Text for `--network`, the configuration or a policy. */
  network: string;
  entries: ProposedEntry[];
  /** Hosts that were tried in vain, which are not proposed. */
  left: { host: string; message: string }[];
  /** False if programs reached more hosts than can be told apart. */
  isComplete: boolean;
}

interface Use {
  callIds: Set<string>;
  programs: Set<string>;
}

/**
 * A preset stands for the hosts that it has, if one of them was reached. Error-free for entries of any origin. What a set-up
 * has reached is left out, since it has a network of its own.
 */
export function proposeHosts(all: readonly EgressEntry[]): Proposal {
  const entries = all.filter(({ phase }) => phase === "run");
  const reached = new Map<string, Use>();
  const left = new Map<string, string>();
  for (const entry of entries) {
    const host = patternFor(entry);
    if (host === null) continue;
    if (entry.outcome === "allowed") addUse(reached, host, entry);
    else left.set(host, entry.message ?? entry.reason ?? entry.outcome);
  }
  const groups = new Map<string, string[]>();
  for (const host of reached.keys()) {
    const preset = Object.keys(HOST_PRESETS).find((one) => coversHost(one, host)) ?? host;
    groups.set(preset, [...(groups.get(preset) ?? []), host]);
  }
  const proposed = [...groups].map(([entry, hosts]) => describeUse(entry, hosts, reached));
  proposed.sort((one, other) => (one.entry < other.entry ? -1 : 1));
  return {
    network: describeNetwork({ kind: "allowlist", hosts: proposed.map(({ entry }) => entry) }),
    entries: proposed,
    left: [...left].filter(([host]) => !reached.has(host)).map(([host, message]) => ({ host, message })),
    isComplete: entries.every(({ host, outcome }) => host !== null || outcome !== "allowed"),
  };
}

/**
 * The pattern for an allow-list; null if there is none, as for a name that was only looked up. A session file may come
 * from anywhere, so only the very name or address counts.
 */
function patternFor({ host, port }: EgressEntry): string | null {
  if (host === null || port === null) return null;
  const target = parseTarget(host);
  if (target === null) return null;
  return describeEndpoint({ target, port });
}

function addUse(reached: Map<string, Use>, host: string, { callId, program }: EgressEntry): void {
  const use = reached.get(host) ?? { callIds: new Set(), programs: new Set() };
  reached.set(host, use);
  if (callId !== null) use.callIds.add(callId);
  if (program !== null) use.programs.add(program);
}

function describeUse(entry: string, hosts: string[], reached: ReadonlyMap<string, Use>): ProposedEntry {
  const all = (of: (use: Use) => Iterable<string>) => [
    ...new Set(
      hosts.flatMap((host) => {
        const use = reached.get(host);
        return use === undefined ? [] : [...of(use)];
      }),
    ),
  ];
  return { entry, hosts, callIds: all(({ callIds }) => callIds), programs: all(({ programs }) => programs) };
}
