import type { Environment } from "../../lib/env.js";
import {
  type ConfiguredProxy,
  describeProxy,
  parseProxyAddress,
  readProxies,
} from "../../lib/proxy/proxies.js";
import type { Check } from "../../sandbox/index.js";
import { check } from "../../sandbox/index.js";

/** Describes the proxies that brig's requests and the sandboxes' connections go through, without passwords. */
export function checkProxies({
  variables,
  egressProxy,
}: Pick<Environment, "variables" | "egressProxy">): Check {
  const { http, https } = readProxies(variables);
  const noProxy = variables.no_proxy || variables.NO_PROXY;
  const parts = [
    `for the model, login and MCP: ${describeWays(http, https)}`,
    ...(!noProxy ? [] : [`not for ${noProxy} (NO_PROXY)`]),
    `for allow-lists of sandboxes: ${describeEgress(egressProxy)}`,
  ];
  const about = { id: "proxies", title: "proxies", found: parts.join("; ") };
  const unusable = [http, https].find((one) => one?.address === null);
  if (unusable)
    return check(about, {
      status: "warn",
      advice: `write ${unusable.variable} as http://HOST:PORT, with USER:PASSWORD@ before the host if it asks for them`,
    });
  if (https === null || egressProxy !== undefined) return check(about);
  return {
    ...check(about),
    advice: "if sandboxes need the proxy as well, set BRIG_EGRESS_PROXY=environment",
  };
}

function describeWays(http: ConfiguredProxy | null, https: ConfiguredProxy | null): string {
  if (http === null && https === null) return "none";
  return `https ${describeOne(https)}, http ${describeOne(http)}`;
}

function describeOne(proxy: ConfiguredProxy | null): string {
  if (proxy === null) return "directly";
  const { variable, address } = proxy;
  if (address === null) return `by ${variable}, which is not the URL of a proxy that brig can use`;
  const user = address.user === null ? "" : " with a user";
  return `through ${describeProxy(address)}${user} (${variable})`;
}

function describeEgress(egressProxy: string | undefined): string {
  if (egressProxy === undefined) return "none";
  if (egressProxy === "environment") return "that of the environment (BRIG_EGRESS_PROXY)";
  const address = parseProxyAddress(egressProxy);
  return address === null ? "BRIG_EGRESS_PROXY, which is not the URL of a proxy" : describeProxy(address);
}
