import { BlockList, isIPv4, isIPv6 } from "node:net";

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
  if (allowed.kind !== "range" || allowed.range.prefix > wanted.range.prefix) return false;
  return rangesContain([allowed.range], wanted.range.address);
}

/** Whether the pattern's host matches the name, whatever the port. */
export function matchesName(pattern: HostPattern, name: string): boolean {
  if (pattern.kind === "name") return pattern.name === name;
  if (name === HOST_NAME) return false;
  return pattern.kind === "public" || (pattern.kind === "suffix" && name.endsWith(pattern.suffix));
}

/** Every public host. Addresses that are not public need a pattern of their own. */
export const PUBLIC = "@public";

/**
 * Hosts that package managers and git need, with the hosts that these redirect to. `storage.googleapis.com` is where
 * `proxy.golang.org` redirects to for large modules; anybody can have files there.
 */
export const HOST_PRESETS: Readonly<Record<string, readonly string[]>> = {
  "@npm": ["registry.npmjs.org:443", "registry.yarnpkg.com:443"],
  "@pypi": ["pypi.org:443", "files.pythonhosted.org:443"],
  "@debian": [
    ...["deb.debian.org:80", "deb.debian.org:443"],
    ...["security.debian.org:80", "security.debian.org:443"],
  ],
  "@crates": ["crates.io:443", "index.crates.io:443", "static.crates.io:443"],
  "@go": ["proxy.golang.org:443", "sum.golang.org:443", "storage.googleapis.com:443"],
  "@github": [
    ...["github.com:443", "api.github.com:443", "codeload.github.com:443"],
    ...["raw.githubusercontent.com:443", "objects.githubusercontent.com:443"],
    ...["release-assets.githubusercontent.com:443", "media.githubusercontent.com:443"],
  ],
};

interface IpRange {
  address: string;
  /** The number of fixed bits at the start: 32 or 128 for a single address. */
  prefix: number;
}

/** Reads `10.0.0.1`, `10.0.0.0/8` and the same of IPv6, without brackets. */
function parseRange(text: string): IpRange | null {
  const [written = "", bits, ...rest] = text.split("/");
  const address = normalAddress(written);
  if (address === null || rest.length > 0) return null;
  const most = isIPv4(address) ? 32 : 128;
  if (bits === undefined) return { address, prefix: most };
  // The bits of a mapped address would count from another start.
  if (!/^\d{1,3}$/.test(bits) || Number(bits) > most || isIPv4(address) !== isIPv4(written)) return null;
  return { address, prefix: Number(bits) };
}

function describeRange({ address, prefix }: IpRange): string {
  const isSingle = prefix === (isIPv4(address) ? 32 : 128);
  return isSingle ? address : `${address}/${prefix}`;
}

/**
 * An address in its shortest spelling; an IPv4 address that is mapped into IPv6 as IPv4. Null for anything
 * else, such as `0x7f.1` or an address with a zone.
 */
export function normalAddress(text: string): string | null {
  if (isIPv4(text)) return text;
  if (!isIPv6(text) || text.includes("%")) return null;
  const short = new URL(`http://[${text}]`).hostname.slice(1, -1);
  const mapped = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(short);
  if (mapped === null) return short;
  const bytes = mapped.slice(1).flatMap((part) => {
    const word = Number.parseInt(part, 16);
    return [word >> 8, word & 0xff];
  });
  return bytes.join(".");
}

export function rangesContain(ranges: readonly IpRange[], address: string): boolean {
  const list = new BlockList();
  for (const range of ranges) list.addSubnet(range.address, range.prefix, familyOf(range.address));
  return list.check(address, familyOf(address));
}

function familyOf(address: string): "ipv4" | "ipv6" {
  return isIPv4(address) ? "ipv4" : "ipv6";
}
