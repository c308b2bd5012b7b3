import { BlockList, isIP } from "node:net";
import { z } from "zod";
import { BrigError, invalidUsage } from "../../errors.js";
import { normalPattern, PUBLIC, type SentHeaders } from "../../sandbox/index.js";
import { requireNetwork } from "../serve/sandboxes/replace-network.js";
import { unsupported } from "./unsupported.js";

const MAX_ENTRIES = 1000;
const MAX_HEADERS = 64;

const entries = z.array(z.string().min(1).max(300)).max(MAX_ENTRIES).nullish();

const headers = z
  .record(
    z.string().regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$/, "must be the name of a header"),
    z
      .string()
      .max(8192)
      .regex(/^[\t\x20-\x7e]*$/, "must be printable ASCII"),
  )
  .refine((sent) => Object.keys(sent).length <= MAX_HEADERS, {
    error: `has more than ${MAX_HEADERS} headers`,
  });

const rules = z
  .record(
    z.string().min(1).max(300),
    z.array(z.object({ transform: z.object({ headers: headers.nullish() }).nullish() })).max(16),
  )
  .refine((hosts) => Object.keys(hosts).length <= MAX_ENTRIES, {
    error: `has more than ${MAX_ENTRIES} hosts`,
  })
  .nullish();

/** What a client may say of the network of a sandbox, also while it runs. */
export const networkUpdateShape = {
  allow_internet_access: z.boolean().nullish(),
  allowOut: entries,
  denyOut: entries,
  rules,
  egressProxy: z.unknown().optional(),
};

export const networkConfigSchema = z.object({
  allowOut: entries,
  denyOut: entries,
  rules,
  egressProxy: z.unknown().optional(),
  allowPublicTraffic: z.boolean().nullish(),
  maskRequestHost: z
    .string()
    .max(300)
    .regex(/^[A-Za-z0-9.:${}[\]_-]+$/, "must be a host")
    .nullish(),
  httpsPorts: z.array(z.int()).nullish(),
});

/** What a client has asked for, as it is told again. */
export interface AskedNetwork {
  allowInternetAccess: boolean | null;
  allowOut?: string[] | undefined;
  denyOut?: string[] | undefined;
  rules?: NonNullable<z.output<typeof rules>> | undefined;
  allowPublicTraffic?: boolean | undefined;
  maskRequestHost?: string | undefined;
}

/** Error: a refusal of what there is not. */
export function askedNetwork(
  { egressProxy, httpsPorts, ...network }: z.output<typeof networkConfigSchema>,
  allowInternetAccess: boolean | null | undefined,
): AskedNetwork {
  if (egressProxy != null) throw unsupported("network.egressProxy, another proxy for a sandbox");
  if (httpsPorts != null && httpsPorts.length > 0)
    throw unsupported("network.httpsPorts, TLS to a server in a sandbox");
  const { allowOut, denyOut, rules, allowPublicTraffic, maskRequestHost } = network;
  return {
    allowInternetAccess: allowInternetAccess ?? null,
    ...(allowOut != null && { allowOut }),
    ...(denyOut != null && { denyOut }),
    ...(rules != null && { rules }),
    ...(allowPublicTraffic != null && { allowPublicTraffic }),
    ...(maskRequestHost != null && { maskRequestHost }),
  };
}

export interface PlannedNetwork {
  /** As `Sandbox.setNetwork` takes it. */
  network: "none" | `allowlist:${string}`;
  sentHeaders: SentHeaders[];
}

const EVERYTHING: ReadonlySet<string> = new Set(["0.0.0.0/0", "::/0"]);

/**
 * What of it is put into force. Where nothing is said and the service allows a network, that is every public host. A list of allowed hosts is all
 * that is allowed, also if nothing is denied. Errors: `policy.invalid` where the service allows none; `usage.invalid`.
 */
export function planNetwork(asked: AskedNetwork, places: { allowsNetwork: boolean }): PlannedNetwork {
  const { allowInternetAccess, allowOut = [], denyOut = [], rules = {} } = asked;
  const wantsSome = allowOut.length > 0 || Object.keys(rules).length > 0 || allowInternetAccess === true;
  if (!places.allowsNetwork && wantsSome) requireNetwork("none", places);
  for (const denied of denyOut) requireDeniable(denied);
  const sentHeaders = Object.entries(rules).flatMap(([host, list]) => sentTo(host, list));
  const hosts = [...new Set(allowOut.map(listEntry))];
  const deniesAll = allowInternetAccess === false || denyOut.some((denied) => EVERYTHING.has(denied));
  const allowed = hosts.length > 0 || deniesAll || !places.allowsNetwork ? hosts : [PUBLIC];
  const network = allowed.length === 0 ? ("none" as const) : (`allowlist:${allowed.join(",")}` as const);
  if (network !== "none") requireNetwork(network, places);
  return { network, sentHeaders };
}

function listEntry(written: string): string {
  if (EVERYTHING.has(written)) return PUBLIC;
  // A bare address of IPv6 has no brackets in E2B.
  const pattern = normalPattern(isIP(written.split("/")[0] ?? "") === 6 ? `[${written}]` : written);
  if (pattern.kind === "parsed" && !pattern.text.includes(",")) return pattern.text;
  throw invalidUsage(
    `network.allowOut: ${pattern.kind === "refused" ? pattern.reason : "one host at a time"}`,
    "name hosts, *.name, addresses or ranges",
  );
}

const unreachable = new BlockList();
for (const [address, prefix] of [
  ["10.0.0.0", 8],
  ["172.16.0.0", 12],
  ["192.168.0.0", 16],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["100.64.0.0", 10],
] as const)
  unreachable.addSubnet(address, prefix);
const LEAST_PREFIX = 8;

/** Error: `usage.invalid` for what a list of allowed hosts cannot say. */
function requireDeniable(denied: string): void {
  const [address = "", prefix = "32"] = denied.split("/");
  const isPrivate = isIP(address) === 4 && Number(prefix) >= LEAST_PREFIX && unreachable.check(address);
  if (EVERYTHING.has(denied) || isPrivate) return;
  throw invalidUsage(
    `network.denyOut: ${JSON.stringify(denied)} cannot be denied by itself; private addresses are denied anyway`,
    "deny 0.0.0.0/0, and name the hosts that are allowed in allowOut",
  );
}

/** What is about the message itself, which only the proxy knows. */
const OWN_HEADERS: ReadonlySet<string> = new Set([
  ...["host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "expect"],
  ...["keep-alive", "proxy-connection", "proxy-authorization"],
]);

function sentTo(written: string, list: NonNullable<AskedNetwork["rules"]>[string]): SentHeaders[] {
  const pattern = normalPattern(written);
  if (pattern.kind === "refused" || written.startsWith("@"))
    throw invalidUsage(
      `network.rules: ${pattern.kind === "refused" ? pattern.reason : "a list of hosts has no rules"}`,
      "name a host, or *.name",
    );
  const headers = Object.assign({}, ...list.map(({ transform }) => transform?.headers ?? {})) as Record<
    string,
    string
  >;
  const own = Object.keys(headers).find((name) => OWN_HEADERS.has(name.toLowerCase()));
  if (own !== undefined)
    throw new BrigError(`network.rules: the header ${own} cannot be set by a rule`, {
      code: "usage.invalid",
    });
  if (Object.values(headers).some((value) => value.includes("${e2b.")))
    throw unsupported("placeholders of stored secrets and identities in the headers of rules");
  return Object.keys(headers).length === 0 ? [] : [{ host: pattern.text, headers }];
}
