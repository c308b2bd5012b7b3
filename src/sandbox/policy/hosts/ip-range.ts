import { BlockList, isIPv4, isIPv6 } from "node:net";

export interface IpRange {
  address: string;
  /** The number of fixed bits at the start: 32 or 128 for a single address. */
  prefix: number;
}

/** Reads `10.0.0.1`, `10.0.0.0/8` and the same of IPv6, without brackets. */
export function parseRange(text: string): IpRange | null {
  const [written = "", bits, ...rest] = text.split("/");
  const address = normalAddress(written);
  if (address === null || rest.length > 0) return null;
  const most = isIPv4(address) ? 32 : 128;
  if (bits === undefined) return { address, prefix: most };
  // The bits of a mapped address would count from another start.
  if (!/^\d{1,3}$/.test(bits) || Number(bits) > most || isIPv4(address) !== isIPv4(written)) return null;
  return { address, prefix: Number(bits) };
}

export function describeRange({ address, prefix }: IpRange): string {
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

export function rangeCovers(outer: IpRange, inner: IpRange): boolean {
  return outer.prefix <= inner.prefix && rangesContain([outer], inner.address);
}

function familyOf(address: string): "ipv4" | "ipv6" {
  return isIPv4(address) ? "ipv4" : "ipv6";
}
