import { isIPv6 } from "node:net";
import { isHostName } from "../../policy/hosts/host-pattern.js";
import { normalAddress } from "../../policy/hosts/ip-range.js";

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
