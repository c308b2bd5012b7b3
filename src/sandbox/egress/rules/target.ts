import { BlockList, isIPv4, isIPv6 } from "node:net";
import { isHostName, normalAddress } from "../../policy/hosts.js";

/** The target that a program asks for, before anything is looked up. */
export type Target = { kind: "name"; name: string } | { kind: "address"; address: string };

/** Far more than a name may have, so that messages about malformed ones stay short. */
const SHOWN_CHARS = 300;

/**
 * Reads a host as it stands in a request: a name, an IPv4 address, or an IPv6 address with or without brackets.
 * Null for anything that two programs may read in two ways: `127.1`, `0x7f000001`, zones, names that are not
 * ASCII, control characters.
 */
export function parseTarget(text: string): Target | null {
  const bracketed = /^\[([^\]]*)\]$/.exec(text)?.[1];
  const address = normalAddress(bracketed ?? text);
  if (address !== null) return { kind: "address", address };
  if (bracketed !== undefined) return null;
  const name = text.toLowerCase().replace(/\.$/, "");
  return isHostName(name) ? { kind: "name", name } : null;
}

/** Reads `host:port`, where IPv6 addresses have brackets. Without `defaultPort`, the port is required. */
export function parseAuthority(
  text: string,
  { defaultPort }: { defaultPort?: number } = {},
): { target: Target; port: number } | null {
  const [, host = "", digits] = /^(\[[^\]]*\]|[^:]*)(?::(\d{1,5}))?$/.exec(text) ?? [];
  const port = digits === undefined ? defaultPort : Number(digits);
  const target = parseTarget(host);
  if (target === null || port === undefined || port < 1 || port > 65_535) return null;
  return { target, port };
}

export function isSameTarget(one: Target, other: Target): boolean {
  return hostOf(one) === hostOf(other);
}

export function hostOf(target: Target): string {
  return target.kind === "name" ? target.name : target.address;
}

/** Writes an endpoint in the syntax of an allow-list. */
export function describeEndpoint({ target, port }: { target: Target; port: number }): string {
  const host = hostOf(target);
  return `${isIPv6(host) ? `[${host}]` : host}:${port}`;
}

/** Printable, whatever a program has sent. */
export function shownHost(text: string): string {
  const printable = text.replace(/[^\x21-\x7e]/g, "?");
  return printable.length > SHOWN_CHARS ? `${printable.slice(0, SHOWN_CHARS)}…` : printable;
}

/** Kind of network that an address belongs to. Only public ones are reached without a rule that names them. */
export type AddressScope =
  | "public"
  | "metadata"
  | "loopback"
  | "link-local"
  | "private"
  | "multicast"
  | "reserved";

/** The first scope that has the address counts. */
const SCOPES: readonly [AddressScope, readonly string[]][] = [
  [
    // Addresses at which clouds answer with credentials: AWS and most others, AWS's containers, Alibaba, Azure, Oracle.
    "metadata",
    [
      ...["169.254.169.254/32", "169.254.170.2/32", "169.254.170.23/32", "100.100.100.200/32"],
      ...["168.63.129.16/32", "192.0.0.192/32", "fd00:ec2::/32", "fd20:ce::254/128"],
    ],
  ],
  ["loopback", ["127.0.0.0/8", "0.0.0.0/8", "::/127"]],
  ["link-local", ["169.254.0.0/16", "fe80::/10"]],
  ["private", ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7", "fec0::/10"]],
  ["multicast", ["224.0.0.0/4", "ff00::/8"]],
  [
    "reserved",
    [
      ...["192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24"],
      ...["203.0.113.0/24", "240.0.0.0/4"],
      // Addresses that carry an IPv4 address: NAT64, Teredo, 6to4. What they reach is not for us to see.
      ...["2001::/32", "2002::/16"],
      ...["2001:2::/48", "2001:10::/28", "2001:20::/28", "2001:db8::/32", "3fff::/20"],
    ],
  ],
  ["public", ["0.0.0.0/0", "2000::/3"]],
];

const lists = SCOPES.map(([scope, ranges]) => {
  const list = new BlockList();
  for (const range of ranges) {
    const [address = "", prefix] = range.split("/");
    list.addSubnet(address, Number(prefix), isIPv4(address) ? "ipv4" : "ipv6");
  }
  return { scope, list };
});

/** The address is in its normal spelling, so a mapped IPv4 address is IPv4 here. */
export function scopeOf(address: string): AddressScope {
  const family = isIPv4(address) ? "ipv4" : "ipv6";
  // The rest of IPv6 is not assigned, or a translation such as 64:ff9b::/96.
  return lists.find(({ list }) => list.check(address, family))?.scope ?? "reserved";
}
