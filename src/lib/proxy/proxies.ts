import { BlockList, isIP, isIPv4 } from "node:net";

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

/** Variables of the environment, by their names. */
export type ProxyVariables = Readonly<Record<string, string | undefined>>;

const NAMES = ["http_proxy", "https_proxy", "all_proxy", "no_proxy"];

/** The value of one variable; `address` is null if it is not the URL of a proxy. */
export interface ConfiguredProxy {
  variable: string;
  address: ProxyAddress | null;
}

/** The proxies of the environment, for requests that this machine makes. */
export interface Proxies {
  http: ConfiguredProxy | null;
  https: ConfiguredProxy | null;
  noProxy: NoProxy;
}

export const NO_PROXIES: Proxies = { http: null, https: null, noProxy: new NoProxy("") };

/** Reads the proxies of the environment. If a variable is set in both cases, lower case counts, as for most programs. */
export function readProxies(variables: ProxyVariables): Proxies {
  const firstOf = (...names: string[]): ConfiguredProxy | null => {
    const variable = names.flatMap((name) => [name, name.toUpperCase()]).find((name) => variables[name]);
    const text = variable === undefined ? undefined : variables[variable];
    if (variable === undefined || text === undefined) return null;
    return { variable, address: parseProxyAddress(text) };
  };
  return {
    http: firstOf("http_proxy", "all_proxy"),
    https: firstOf("https_proxy", "all_proxy"),
    noProxy: new NoProxy(variables.no_proxy || variables.NO_PROXY || ""),
  };
}

/** The variables of the environment that name proxies. */
export function proxyVariables(variables: ProxyVariables): ProxyVariables {
  const names = NAMES.flatMap((name) => [name, name.toUpperCase()]);
  return Object.fromEntries(names.map((name) => [name, variables[name]]));
}

/** The proxy for a URL; null if it is reached directly, as this machine itself always is. */
export function proxyFor({ http, https, noProxy }: Proxies, url: URL): ConfiguredProxy | null {
  const isTls = url.protocol === "https:";
  const host = hostOf(url);
  const port = url.port === "" ? (isTls ? 443 : 80) : Number(url.port);
  if (isLoopback(host) || noProxy.names(host, port)) return null;
  return isTls ? https : http;
}

/** The host of a URL, without brackets. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, "");
}

/** A proxy would take its own machine for this one. */
function isLoopback(host: string): boolean {
  return host === "::1" || (isIPv4(host) && host.startsWith("127.")) || /(?:^|\.)localhost\.?$/.test(host);
}

/** A proxy that connects to the internet on this machine's behalf. */
export interface ProxyAddress {
  kind: "http" | "socks";
  host: string;
  port: number;
  /** Whether the connection to the proxy itself is TLS. */
  usesTls: boolean;
  /** Null without a user. */
  user: { name: string; password: string } | null;
}

const KINDS: Readonly<Record<string, Pick<ProxyAddress, "kind" | "port" | "usesTls">>> = {
  "http:": { kind: "http", port: 80, usesTls: false },
  "https:": { kind: "http", port: 443, usesTls: true },
  "socks5:": { kind: "socks", port: 1080, usesTls: false },
  "socks5h:": { kind: "socks", port: 1080, usesTls: false },
  "socks:": { kind: "socks", port: 1080, usesTls: false },
};

/** Reads `http://user:password@proxy:3128`, also without `http://`; null for what is not the URL of a proxy. */
export function parseProxyAddress(text: string): ProxyAddress | null {
  const full = text.includes("://") ? text : `http://${text}`;
  const url = URL.canParse(full) ? new URL(full) : null;
  const usual = url === null ? undefined : KINDS[url.protocol];
  if (url === null || usual === undefined || url.hostname === "") return null;
  const { username, password } = url;
  return {
    ...usual,
    host: url.hostname.replace(/^\[|\]$/g, ""),
    port: url.port === "" ? usual.port : Number(url.port),
    user:
      username === "" && password === "" ? null : { name: decoded(username), password: decoded(password) },
  };
}

/** The address for people and messages: without the user and the password. */
export function describeProxy({ kind, host, port, usesTls }: ProxyAddress): string {
  const scheme = kind === "socks" ? "socks5" : usesTls ? "https" : "http";
  return `${scheme}://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/** The name and the value of the header, or nothing. */
export function authorizationHeader({ user }: ProxyAddress): string[] {
  if (user === null) return [];
  const encoded = Buffer.from(`${user.name}:${user.password}`).toString("base64");
  return ["Proxy-Authorization", `Basic ${encoded}`];
}

/** A password with a % that encodes nothing is taken as it stands. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
