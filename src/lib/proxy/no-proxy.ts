import { BlockList, isIP } from "node:net";

/** The hosts that an entry of NO_PROXY names. */
type Entry = { port: number | null } & (
  | { kind: "all" }
  /** A domain, with all its subdomains. */
  | { kind: "name"; name: string }
  | { kind: "addresses"; list: BlockList }
);

/** The hosts of NO_PROXY, which are reached without the proxy. */
export class NoProxy {
  readonly #entries: readonly Entry[];

  /** Reads the list as curl does: names and addresses, separated by commas or spaces. Entries that cannot be read are left out. */
  constructor(list: string) {
    this.#entries = list
      .toLowerCase()
      .split(/[\s,]+/)
      .flatMap(readEntry);
  }

  /** `host` is a name or an address, in lower case and without brackets. */
  names(host: string, port: number): boolean {
    const version = isIP(host);
    return this.#entries.some((entry) => {
      if (entry.port !== null && entry.port !== port) return false;
      if (entry.kind === "all") return true;
      if (entry.kind === "addresses")
        return version !== 0 && entry.list.check(host, version === 4 ? "ipv4" : "ipv6");
      return version === 0 && (host === entry.name || host.endsWith(`.${entry.name}`));
    });
  }
}

function readEntry(text: string): Entry[] {
  if (text === "") return [];
  if (text === "*") return [{ kind: "all", port: null }];
  const whole = readAddresses(text);
  if (whole !== null) return [{ kind: "addresses", list: whole, port: null }];
  const [, bracketed, plain, digits] = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d{1,5}))?$/.exec(text) ?? [];
  const port = digits === undefined ? null : Number(digits);
  const list = readAddresses(bracketed ?? plain ?? "");
  if (list !== null) return [{ kind: "addresses", list, port }];
  const name = plain?.replace(/^\*?\./, "");
  return name === undefined || name === "" ? [] : [{ kind: "name", name, port }];
}

/** Reads an address or a range of them, such as `10.0.0.0/8`. */
function readAddresses(text: string): BlockList | null {
  const [address = "", bits, ...rest] = text.split("/");
  const version = isIP(address);
  const most = version === 4 ? 32 : 128;
  const prefix = bits === undefined ? most : /^\d{1,3}$/.test(bits) ? Number(bits) : Number.NaN;
  if (version === 0 || rest.length > 0 || address.includes("%") || !(prefix <= most)) return null;
  const list = new BlockList();
  list.addSubnet(address, prefix, version === 4 ? "ipv4" : "ipv6");
  return list;
}
