import type { NetworkScope } from "../policy/network.js";
import type { SandboxSetup } from "../settings/sandbox-settings.js";

/** Whether programs of a sandbox reach something through brig, at least during its set-up. */
export function hasAllowList(network: NetworkScope, setup: SandboxSetup | undefined): boolean {
  return network.kind === "allowlist" || setup?.network.kind === "allowlist";
}
