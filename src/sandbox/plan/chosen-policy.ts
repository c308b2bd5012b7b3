import { BrigError } from "../../errors.js";
import { loadPolicy } from "../../policy/load-policy.js";
import { DEFAULT_MODE } from "../../policy/modes.js";
import { parseNetwork } from "../../policy/network.js";
import type { LoadedPolicy } from "../../policy/policy.js";
import type { SandboxOptions } from "../sandbox-options.js";

const DEFAULT_LEASE_SECONDS = 60;
const MAX_LEASE_SECONDS = 7 * 24 * 3600;

export function checkedLease(leaseSeconds = DEFAULT_LEASE_SECONDS): number {
  if (Number.isFinite(leaseSeconds) && leaseSeconds >= 1 && leaseSeconds <= MAX_LEASE_SECONDS)
    return Math.round(leaseSeconds);
  throw new BrigError(`a lease of ${leaseSeconds} seconds is not possible`, {
    code: "usage.invalid",
    hint: `leaseSeconds must be between 1 and ${MAX_LEASE_SECONDS}; keep: true turns the lease off`,
  });
}

/** The policy that a mode or a file names, with the network that a flag puts in its place. */
export async function loadChosenPolicy({ protectsLike, ...options }: SandboxOptions): Promise<LoadedPolicy> {
  const [chosen, names] = await Promise.all([loadNamedPolicy(options), protectedNames(protectsLike)]);
  const { policy } = chosen;
  const held = [...new Set([...policy.workspace.protected, ...names])];
  return { ...chosen, policy: { ...policy, workspace: { ...policy.workspace, protected: held } } };
}

async function protectedNames(nameOrFile: string | undefined): Promise<string[]> {
  if (nameOrFile === undefined) return [];
  const { workspace } = (await loadPolicy(nameOrFile)).policy;
  if (workspace.access === "rw" || nameOrFile === DEFAULT_MODE) return workspace.protected;
  return await protectedNames(DEFAULT_MODE);
}

async function loadNamedPolicy({ mode, policyFile, network }: SandboxOptions): Promise<LoadedPolicy> {
  if (mode !== undefined && policyFile !== undefined)
    throw new BrigError("a mode and a policy file were both given", {
      code: "usage.invalid",
      hint: "leave one of them out",
    });
  const loaded = await loadPolicy(policyFile ?? mode ?? DEFAULT_MODE);
  if (network === undefined) return loaded;
  const parsed = parseNetwork(network);
  if (parsed.kind === "refused")
    throw new BrigError(`the network setting ${JSON.stringify(network)} is not valid: ${parsed.reason}`, {
      code: "usage.invalid",
    });
  if (parsed.network.kind === loaded.policy.network.kind) return loaded;
  if (!loaded.policy.overrides.network && parsed.network.kind !== "none")
    throw new BrigError(`the policy ${loaded.name} does not let the network be opened`, {
      code: "usage.invalid",
      hint: "leave out --network, or use --sandbox workspace-write",
    });
  return { ...loaded, policy: { ...loaded.policy, network: parsed.network } };
}
