import { isIPv4 } from "node:net";
import { HOST_PRESETS, PUBLIC } from "./host-presets.js";
import { describeRange, type IpRange, parseRange, rangeCovers } from "./ip-range.js";

/** The meaning of one pattern of an allow-list. If it has no port, it allows all ports. */
export type HostPattern = { port: number | null } & (
  | { kind: "name"; name: string }
  /** All names that end with this text, which begins with a dot. */
  | { kind: "suffix"; suffix: string }
  | { kind: "range"; range: IpRange }
  /** Every name and address, as long as the address is a public one. */
  | { kind: "public" }
);

/** The machine on which brig runs, as seen from a sandbox. Only a pattern with just this name matches it. */
export const HOST_NAME = "host.internal";

const HOST_LABEL = "[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?";
const NAME = new RegExp(`^${HOST_LABEL}(?:\\.${HOST_LABEL})*$`);
const NAME_MAX_CHARS = 253;

export function isHostName(text: string): boolean {
  return text.length <= NAME_MAX_CHARS && NAME.test(text) && !endsInNumber(text);
}

/**
 * Whether some programs would read the name as an address: `127.1`, `2130706433` and `0x7f.1` all are 127.0.0.1
 * to them.
 */
function endsInNumber(name: string): boolean {
  return /^(?:\d+|0x[0-9a-f]*)$/.test(name.slice(name.lastIndexOf(".") + 1));
}

export type PatternParse = { kind: "parsed"; text: string } | { kind: "refused"; reason: string };

/** Brings one pattern or the name of a preset into its normal spelling. */
export function normalPattern(written: string): PatternParse {
  const text = written.toLowerCase();
  if (text === "*")
    return refused(`"*" is not a host: write ${PUBLIC} for every public host, or use the network full`);
  if (text.startsWith("@")) {
    if (text === PUBLIC || Object.hasOwn(HOST_PRESETS, text)) return { kind: "parsed", text };
    const known = [...Object.keys(HOST_PRESETS), PUBLIC].join(", ");
    return refused(`"${text}" is not one of the lists of hosts that brig knows: ${known}`);
  }
  const pattern = parsePattern(text);
  if (pattern === null)
    return refused(
      `"${text}" is not a host name, *.name, an address or a range, each with an optional :port`,
    );
  if (pattern.kind === "name" && pattern.name === HOST_NAME && pattern.port === null)
    return refused(`${HOST_NAME} is this machine, and needs a port, as in ${HOST_NAME}:11434`);
  return { kind: "parsed", text: describePattern(pattern) };
}

function refused(reason: string): PatternParse {
  return { kind: "refused", reason };
}

/** The patterns of one entry of an allow-list, which may be a preset. Entries are in their normal spelling. */
export function patternsOf(entry: string): HostPattern[] {
  if (entry === PUBLIC) return [{ kind: "public", port: null }];
  const preset = Object.hasOwn(HOST_PRESETS, entry) ? HOST_PRESETS[entry] : undefined;
  return (preset ?? [entry]).map(parsePattern).filter((pattern) => pattern !== null);
}

function parsePattern(text: string): HostPattern | null {
  const bracketed = /^\[([^\]]*)\](?::(\d{1,5}))?$/.exec(text);
  const plain = /^([^:[\]]+)(?::(\d{1,5}))?$/.exec(text);
  const [, host = "", digits] = bracketed ?? plain ?? [];
  const port = digits === undefined ? null : Number(digits);
  if (host === "" || (port !== null && (port < 1 || port > 65_535))) return null;
  const range = parseRange(host);
  if (range !== null) return { kind: "range", range, port };
  if (bracketed !== null) return null;
  const name = host.startsWith("*.") ? host.slice(2) : host;
  if (host.length > NAME_MAX_CHARS || !isHostName(name)) return null;
  return name === host ? { kind: "name", name, port } : { kind: "suffix", suffix: `.${name}`, port };
}

function describePattern(pattern: HostPattern): string {
  return pattern.port === null ? hostText(pattern) : `${hostText(pattern)}:${pattern.port}`;
}

function hostText(pattern: HostPattern): string {
  if (pattern.kind === "name") return pattern.name;
  if (pattern.kind === "suffix") return `*${pattern.suffix}`;
  if (pattern.kind === "public") return PUBLIC;
  const text = describeRange(pattern.range);
  return isIPv4(pattern.range.address) ? text : `[${text}]`;
}

/**
 * Whether the pattern allows any protocol. On the ports of the web, and where no port is named, only HTTP and
 * TLS pass, whose requests name the host that they are for.
 */
export function allowsAnyProtocol({ port }: HostPattern): boolean {
  return port !== null && port !== 80 && port !== 443;
}

/** Whether one pattern covers all hosts, ports and protocols of another. */
export function patternCovers(allowed: HostPattern, wanted: HostPattern): boolean {
  if (allowed.port !== null && allowed.port !== wanted.port) return false;
  if (allowsAnyProtocol(wanted) && !allowsAnyProtocol(allowed)) return false;
  if (wanted.kind === "name") return matchesName(allowed, wanted.name);
  if (wanted.kind === "suffix")
    return allowed.kind === "public" || (allowed.kind === "suffix" && wanted.suffix.endsWith(allowed.suffix));
  if (wanted.kind === "public") return allowed.kind === "public";
  return allowed.kind === "range" && rangeCovers(allowed.range, wanted.range);
}

/** Whether the pattern's host matches the name, whatever the port. */
export function matchesName(pattern: HostPattern, name: string): boolean {
  if (pattern.kind === "name") return pattern.name === name;
  if (name === HOST_NAME) return false;
  return pattern.kind === "public" || (pattern.kind === "suffix" && name.endsWith(pattern.suffix));
}
