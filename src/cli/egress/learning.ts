import type { AgentEvent } from "../../agent/index.js";
import { visibleLine } from "../../lib/terminal/visible-line.js";
import type { EgressEntry, Proposal } from "../../sandbox/index.js";
import { clipped, proposeHosts } from "../../sandbox/index.js";

export const LEARNING =
  "brig: --network learn lets programs send anything to every public host, and only records it: use it with nothing secret\n";

const SHOWN_NEEDS = 5;
const SHOWN_LEFT = 20;
const TEXT_CHARS = 300;

/** The hosts that programs of a session and of its agents have reached, collected from its events. */
export class Learned {
  readonly #entries: EgressEntry[] = [];

  readonly take = (event: AgentEvent): void => {
    if (event.kind === "egress") this.#entries.push(event.entry);
    if (event.kind === "agent-event") this.take(event.event);
  };

  get proposal(): Proposal {
    return proposeHosts(this.#entries);
  }
}

/** The proposal as a text for people, to paste from. Names come from inside, or from a session file, which may contain anything. */
export function proposalText({ network, entries, left, isComplete }: Proposal): string {
  if (entries.length === 0)
    return `brig: programs reached nothing, so that they need no network: --network none\n${leftText(left)}`;
  const width = Math.max(...entries.map(({ entry }) => entry.length));
  return [
    "brig: the shortest list of hosts that allows what programs reached, for --network, config.toml or a policy:",
    `  network = ${JSON.stringify(network)}`,
    "Each entry was needed by:",
    ...entries.map(({ entry, hosts, callIds, programs }) => {
      const which = entry.startsWith("@") ? [`for ${some(hosts)}`] : [];
      const who = [
        some(programs) || "an unknown program",
        ...(callIds.length === 0 ? [] : [`in ${some(callIds)}`]),
      ];
      return line(`${entry.padEnd(width)}  ${[...who, ...which].join(" ")}`);
    }),
    ...(isComplete ? [] : ["This list is not complete: programs reached more hosts than brig tells apart."]),
    leftText(left),
  ].join("\n");
}

function leftText(left: Proposal["left"]): string {
  if (left.length === 0) return "";
  const more = left.length - SHOWN_LEFT;
  return [
    "Tried in vain, and not on the list:",
    ...left.slice(0, SHOWN_LEFT).map(({ host, message }) => line(`${host}  ${message}`)),
    ...(more > 0 ? [`  and ${more} more`] : []),
    "",
  ].join("\n");
}

function some(texts: readonly string[]): string {
  const more = texts.length - SHOWN_NEEDS;
  return [...texts.slice(0, SHOWN_NEEDS), ...(more > 0 ? [`${more} more`] : [])].join(", ");
}

function line(text: string): string {
  return `  ${clipped(visibleLine(text), TEXT_CHARS)}`;
}

/** The proposal as it is in events of `--json`. */
export function wireProposal({
  network,
  entries,
  left,
  isComplete,
}: Proposal): Readonly<Record<string, unknown>> {
  return {
    network,
    entries: entries.map(({ entry, hosts, callIds, programs }) => ({
      entry,
      hosts,
      call_ids: callIds,
      programs,
    })),
    left,
    is_complete: isComplete,
  };
}
