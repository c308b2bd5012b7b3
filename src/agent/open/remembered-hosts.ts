import type { SandboxSettings } from "../../sandbox/index.js";
import type { ProjectHosts } from "../config/project-hosts.js";

/** The hosts that are always allowed in the workspace of a sandbox; null where hosts cannot be remembered. */
export async function projectHosts({
  workspace,
  environment: { brigHome },
  policy: {
    policy: { overrides, network },
  },
}: SandboxSettings): Promise<ProjectHosts | null> {
  if (workspace === null || !overrides.network || network.kind !== "allowlist") return null;
  const { ProjectHosts } = await import("../config/project-hosts.js");
  return new ProjectHosts({ brigHome, directory: workspace });
}

/** Adds the hosts that the user always allows in this directory to an allow-list. Error: `config.invalid`. */
export async function withProjectHosts(settings: SandboxSettings): Promise<SandboxSettings> {
  const { policy } = settings;
  const { network } = policy.policy;
  const always = (await (await projectHosts(settings))?.read()) ?? [];
  if (network.kind !== "allowlist" || always.length === 0) return settings;
  const hosts = [...new Set([...network.hosts, ...always])];
  return { ...settings, policy: { ...policy, policy: { ...policy.policy, network: { ...network, hosts } } } };
}

/** Returns a function that remembers a host as always allowed; undefined where hosts cannot be remembered. */
export function rememberingIn(settings: SandboxSettings): ((host: string) => Promise<void>) | undefined {
  const { workspace, policy } = settings;
  const { network, overrides } = policy.policy;
  if (workspace === null || network.kind !== "allowlist" || !overrides.network) return undefined;
  return async (host) => await (await projectHosts(settings))?.add(host);
}
