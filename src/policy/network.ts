import { normalPattern, patternCovers, patternsOf } from "./hosts/host-pattern.js";

/** What a sandbox may reach. The hosts of an allow-list are in the normal spelling of `normalPattern`. */
export type NetworkScope =
  | { kind: "none" }
  | { kind: "full" }
  | { kind: "allowlist"; hosts: readonly string[] };

export type NetworkParse = { kind: "parsed"; network: NetworkScope } | { kind: "refused"; reason: string };

const ALLOWLIST = "allowlist:";
/**
 * Reads `none`, `full` or `allowlist:HOST[,HOST…]`; a HOST is a name, `*.name`, an address or a range, each with
 * an optional `:port`, or a preset such as `@npm`.
 */
export function parseNetwork(text: string): NetworkParse {
  if (text === "none" || text === "full") return { kind: "parsed", network: { kind: text } };
  if (!text.startsWith(ALLOWLIST))
    return {
      kind: "refused",
      reason: `"${text}" is not a network setting: use none, full or allowlist:HOST,…`,
    };
  const written = text
    .slice(ALLOWLIST.length)
    .split(",")
    .map((host) => host.trim())
    .filter((host) => host !== "");
  const hosts: string[] = [];
  for (const host of written) {
    const pattern = normalPattern(host);
    if (pattern.kind === "refused") return pattern;
    hosts.push(pattern.text);
  }
  return { kind: "parsed", network: { kind: "allowlist", hosts } };
}

/** In the format of `parseNetwork`. */
export function describeNetwork(network: NetworkScope): string {
  return network.kind === "allowlist" ? `${ALLOWLIST}${network.hosts.join(",")}` : network.kind;
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
