import type { UpstreamProxy } from "../../egress/upstream/read-upstream.js";
import type { SandboxOptions } from "../../sandbox-options.js";
import type { SandboxSettings } from "../../settings/sandbox-settings.js";
import { hasAllowList } from "../../setup/has-allow-list.js";

/** The proxy between this machine and the internet; null if none is set, or no allow-list needs it. Error: `usage.invalid`. */
export async function upstreamOf(
  { environment, policy, setup }: Pick<SandboxSettings, "environment" | "policy" | "setup">,
  { egressProxy = environment.egressProxy }: Pick<SandboxOptions, "egressProxy">,
): Promise<UpstreamProxy | null> {
  if (egressProxy === undefined || !hasAllowList(policy.policy.network, setup)) return null;
  const { readUpstream } = await import("../../egress/upstream/read-upstream.js");
  return readUpstream(egressProxy, environment.variables);
}
