/** What a sandbox may reach. `allowlist` needs a proxy, and is refused as long as there is none. */
export type NetworkScope =
  | { kind: "none" }
  | { kind: "full" }
  | { kind: "allowlist"; hosts: readonly string[] };

export type NetworkParse = { kind: "parsed"; network: NetworkScope } | { kind: "refused"; reason: string };

const ALLOWLIST = "allowlist:";
const HOST_LABEL = "[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?";
const HOST_PATTERN = new RegExp(`^(?:\\*\\.)?${HOST_LABEL}(?:\\.${HOST_LABEL})*(?::[0-9]{1,5})?$`);
const HOST_MAX_CHARS = 253;

/** Reads `none`, `full` or `allowlist:HOST[,HOST…]`; a HOST is `name[:port]` or `*.name[:port]`. */
export function parseNetwork(text: string): NetworkParse {
  if (text === "none" || text === "full") return { kind: "parsed", network: { kind: text } };
  if (!text.startsWith(ALLOWLIST))
    return refused(`"${text}" is not a network setting: use none, full or allowlist:HOST,…`);
  const hosts = text
    .slice(ALLOWLIST.length)
    .split(",")
    .map((host) => host.trim().toLowerCase())
    .filter((host) => host !== "");
  const wrong = hosts.find((host) => !isHostPattern(host));
  if (wrong !== undefined)
    return refused(`"${wrong}" is not a host name or *.name, each with an optional :port`);
  return { kind: "parsed", network: { kind: "allowlist", hosts } };
}

/** In the format of `parseNetwork`. */
export function describeNetwork(network: NetworkScope): string {
  return network.kind === "allowlist" ? `${ALLOWLIST}${network.hosts.join(",")}` : network.kind;
}

/** Whether one pattern covers all hosts and ports of another. A pattern without a port covers all ports. */
export function coversHost(allowed: string, wanted: string): boolean {
  const [name = "", port] = allowed.split(":");
  const [wantedName = "", wantedPort] = wanted.split(":");
  if (port !== undefined && port !== wantedPort) return false;
  return name === wantedName || (name.startsWith("*.") && wantedName.endsWith(name.slice(1)));
}

function isHostPattern(host: string): boolean {
  const port = host.includes(":") ? Number(host.slice(host.indexOf(":") + 1)) : 1;
  return host.length <= HOST_MAX_CHARS && HOST_PATTERN.test(host) && port >= 1 && port <= 65_535;
}

function refused(reason: string): NetworkParse {
  return { kind: "refused", reason };
}
