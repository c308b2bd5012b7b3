import { normalPattern, PUBLIC, patternCovers, patternsOf } from "./hosts.js";

/** The network access of a sandbox. The hosts of an allow-list are in the normal spelling of `normalPattern`. */
export type NetworkScope =
  | { kind: "none" }
  | { kind: "full" }
  /** `learns`: the hosts that programs reach are turned into a proposal for a shorter list. */
  | { kind: "allowlist"; hosts: readonly string[]; learns?: true | undefined };

export type NetworkParse = { kind: "parsed"; network: NetworkScope } | { kind: "refused"; reason: string };

const ALLOWLIST = "allowlist:";
const LEARN = "learn";

/**
 * Reads `none`, `full`, `allowlist:HOST[,HOST…]` or `learn[:HOST,…]`, which allows every public host as well; a HOST is a name, `*.name`, an address or a range, each with
 * an optional `:port`, or a preset such as `@npm`.
 */
export function parseNetwork(text: string): NetworkParse {
  if (text === "none" || text === "full") return { kind: "parsed", network: { kind: text } };
  if (text === LEARN || text.startsWith(`${LEARN}:`)) {
    const listed = parseHosts(text.slice(LEARN.length + 1));
    if (listed.kind === "refused") return listed;
    const hosts = [PUBLIC, ...listed.hosts];
    return { kind: "parsed", network: { kind: "allowlist", hosts, learns: true } };
  }
  if (!text.startsWith(ALLOWLIST))
    return { kind: "refused", reason: `"${text}" is not a network setting: ${SETTINGS}` };
  const listed = parseHosts(text.slice(ALLOWLIST.length));
  if (listed.kind === "refused") return listed;
  return { kind: "parsed", network: { kind: "allowlist", hosts: listed.hosts } };
}

const SETTINGS = "use none, full, learn or allowlist:HOST,…";

/** The reason for which `parseNetwork` refuses a setting, as the end of a sentence that has named the setting already. */
export function reasonAfterName(text: string, reason: string): string {
  const hasHosts = [ALLOWLIST, `${LEARN}:`].some((start) => text.startsWith(start));
  return hasHosts ? reason : SETTINGS;
}

function parseHosts(text: string): { kind: "parsed"; hosts: string[] } | { kind: "refused"; reason: string } {
  const written = text
    .split(",")
    .map((host) => host.trim())
    .filter((host) => host !== "");
  const hosts: string[] = [];
  for (const host of written) {
    const pattern = normalPattern(host);
    if (pattern.kind === "refused") return pattern;
    hosts.push(pattern.text);
  }
  return { kind: "parsed", hosts };
}

/** Describes the network in the format of `parseNetwork`. */
export function describeNetwork(network: NetworkScope): string {
  if (network.kind !== "allowlist") return network.kind;
  if (network.learns !== true) return `${ALLOWLIST}${network.hosts.join(",")}`;
  return [LEARN, ...network.hosts.slice(1)].join(",").replace(",", ":");
}

/** Whether one entry of an allow-list covers all hosts, ports and protocols of another. */
export function coversHost(allowed: string, wanted: string): boolean {
  const outer = patternsOf(allowed);
  return patternsOf(wanted).every((inner) => outer.some((one) => patternCovers(one, inner)));
}

/** Whether the outer setting allows everything that the inner one does. */
export function isWithinNetwork(inner: NetworkScope, outer: NetworkScope): boolean {
  if (inner.kind === "none" || outer.kind === "full") return true;
  if (inner.kind === "full" || outer.kind === "none") return false;
  return inner.hosts.every((host) => outer.hosts.some((allowed) => coversHost(allowed, host)));
}
