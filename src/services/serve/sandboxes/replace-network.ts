import { BrigError, invalidUsage, isBrigError } from "../../../errors.js";
import type { HostPattern, NetworkScope, Sandbox, SandboxMode } from "../../../sandbox/index.js";
import {
  describeNetwork,
  HOST_NAME,
  ownAddresses,
  parseNetwork,
  patternsOf,
  scopeOf,
} from "../../../sandbox/index.js";
import { Refusal } from "../http/refusal.js";

/**
 * Error: `policy.invalid` where the service gives its sandboxes no network, and for a list with the machine of the service itself. With
 * such a list a client would reach programs that listen for this machine only, which the network full does not let it do.
 */
export function requireNetwork(network: string, { allowsNetwork }: { allowsNetwork: boolean }): void {
  if (!allowsNetwork)
    throw new BrigError("this service gives sandboxes no network: it runs without --allow-network", {
      code: "policy.invalid",
      hint: "its operator can allow it with brig serve --allow-network",
    });
  refuseOwnMachine(network);
}

const refusedScopes: ReadonlySet<string> = new Set(["loopback", "metadata"]);

function refuseOwnMachine(text: string): void {
  const parsed = parseNetwork(text);
  // What is not valid is refused where it is used.
  if (parsed.kind === "refused" || parsed.network.kind !== "allowlist") return;
  const own = ownAddresses();
  const isRefused = (pattern: HostPattern) =>
    pattern.kind === "range" &&
    (refusedScopes.has(scopeOf(pattern.range.address)) || own.includes(pattern.range.address));
  const refused = parsed.network.hosts.find((host) => patternsOf(host).some(isRefused));
  if (refused === undefined) return;
  throw new BrigError(`${refused} is an address of the service's machine, or of its metadata service`, {
    code: "policy.invalid",
    hint: `name other hosts, or one port of this machine: ${HOST_NAME}:PORT`,
  });
}

/**
 * What a sandbox without a network is opened with. Where the service allows a network, that is a list of hosts without any, because only a list can
 * change while the sandbox runs. The mode read-only lets no network be opened.
 */
export function closedNetwork(
  mode: SandboxMode,
  { allowsNetwork }: { allowsNetwork: boolean },
): "none" | "allowlist:" {
  return allowsNetwork && mode !== "read-only" ? "allowlist:" : "none";
}

/** A list without hosts is none for the client. */
export function shownNetwork(network: NetworkScope): string {
  return network.kind === "allowlist" && network.hosts.length === 0 ? "none" : describeNetwork(network);
}

/**
 * Replaces the hosts that a sandbox may reach, and gives the setting in its usual spelling. Errors: `usage.invalid`; a refusal with 409 for a
 * sandbox whose network cannot change.
 */
export function replaceNetwork(
  { sandbox, task }: { sandbox: Sandbox; task: string | null },
  network: string,
): string {
  if (task !== null)
    throw invalidUsage("the sandbox of a task has its own network", "create a sandbox without task");
  const parsed = parseNetwork(network);
  try {
    sandbox.setNetwork(network);
  } catch (error) {
    if (!isBrigError(error, "policy.not-enforced")) throw error;
    const { message, code, hint } = error;
    throw new Refusal(message, { status: 409, code, hint: hint ?? "create another sandbox", cause: error });
  }
  return parsed.kind === "parsed" ? shownNetwork(parsed.network) : network;
}
