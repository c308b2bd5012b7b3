import { isIPv4 } from "node:net";
import { NoProxy } from "./no-proxy.js";
import { type ProxyAddress, parseProxyAddress } from "./proxy-address.js";

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
