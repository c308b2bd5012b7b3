import type { NetworkScope } from "../../policy/network.js";
import type { TaskNetwork } from "../../tasks/task.js";

/** A task's network as a policy has it. The hosts of a task have no ports, and its IPv6 addresses no brackets. */
export function networkScope({ mode, allowedHosts }: TaskNetwork): NetworkScope {
  if (mode === "public") return { kind: "full" };
  if (mode === "no-network") return { kind: "none" };
  const hosts = allowedHosts.map((host) => (host.includes(":") ? `[${host}]` : host));
  return { kind: "allowlist", hosts };
}
