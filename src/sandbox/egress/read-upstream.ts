import { BrigError } from "../../errors.js";
import { NoProxy, type ProxyAddress, parseProxyAddress } from "../../lib/proxy/proxies.js";
import type { Endpoint } from "./rules/decide.js";

/** The proxy for the connections of sandboxes. */
export interface UpstreamProxy extends ProxyAddress {
  bypassed: NoProxy;
}

type Variables = Readonly<Record<string, string | undefined>>;

/** The setting that stands for the proxy of `HTTPS_PROXY` or `ALL_PROXY`. */
const FROM_ENVIRONMENT = "environment";

/**
 * Reads `http://user:password@proxy:3128`, or "environment"; null if that has none. Hosts of `NO_PROXY` are reached
 * directly in either case. Error: `usage.invalid`, which does not repeat the text, since it may have a password.
 */
export function readUpstream(text: string, variables: Variables): UpstreamProxy | null {
  const either = (name: string) => variables[name] ?? variables[name.toUpperCase()];
  const isFromEnvironment = text === FROM_ENVIRONMENT;
  const written = isFromEnvironment ? (either("https_proxy") ?? either("all_proxy")) : text;
  if (written === undefined) return null;
  const address = parseProxyAddress(written);
  if (address?.kind === "http") return { ...address, bypassed: new NoProxy(either("no_proxy") ?? "") };
  const source = isFromEnvironment ? "HTTPS_PROXY of the environment" : "the upstream proxy";
  throw new BrigError(`${source} is not a URL of a proxy that brig can use`, {
    code: "usage.invalid",
    hint: "write http://HOST:PORT or https://HOST:PORT, with USER:PASSWORD@ before the host if it asks for them",
  });
}

/** Whether NO_PROXY names the target. */
export function isBypassed({ bypassed }: UpstreamProxy, { target, port }: Endpoint): boolean {
  return bypassed.names(target.kind === "name" ? target.name : target.address, port);
}
