import type { UpstreamProxy } from "../../egress/upstream/read-upstream.js";
import type { SandboxOptions } from "../sandbox-options.js";
import type { SandboxSettings } from "../settings/sandbox-settings.js";

/** The proxy between this machine and the internet; null if none is set, or no allow-list needs it. Error: `usage.invalid`. */
export async function upstreamOf(
  { environment, policy }: Pick<SandboxSettings, "environment" | "policy">,
  { egressProxy = environment.egressProxy }: Pick<SandboxOptions, "egressProxy">,
): Promise<UpstreamProxy | null> {
  if (egressProxy === undefined || policy.policy.network.kind !== "allowlist") return null;
  const { readUpstream } = await import("../../egress/upstream/read-upstream.js");
  return readUpstream(egressProxy, environment.variables);
}
