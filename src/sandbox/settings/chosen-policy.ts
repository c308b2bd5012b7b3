import { BrigError } from "../../errors.js";
import { loadPolicy } from "../policy/load-policy.js";
import { DEFAULT_MODE } from "../policy/modes.js";
import { isWithinNetwork, parseNetwork, reasonAfterName } from "../policy/network.js";
import type { LoadedPolicy } from "../policy/policy.js";
import type { SandboxOptions } from "../sandbox-options.js";

export type PolicyChoice = Pick<SandboxOptions, "mode" | "policyFile" | "network" | "user" | "protectsLike">;

/** The policy of a mode or a file, with the network setting, the user and the protected names from the options. */
export async function loadChosenPolicy({
  protectsLike,
  user,
  ...choice
}: PolicyChoice): Promise<LoadedPolicy> {
  const likeNames = protectsLike === undefined ? [] : loadPolicy(protectsLike).then(protectedNames);
  const [chosen, names] = await Promise.all([loadNamedPolicy(choice), likeNames]);
  return protecting(user === undefined ? chosen : runningAs(user, chosen), names);
}

/** Error: `usage.invalid`. */
function runningAs(user: string, { policy, ...loaded }: LoadedPolicy): LoadedPolicy {
  if (!/^[0-9]{1,9}:[0-9]{1,9}$/.test(user))
    throw new BrigError(`${JSON.stringify(user)} does not say whom commands run as`, {
      code: "usage.invalid",
      hint: "give the numbers of a user and of a group, such as 1000:1000",
    });
  if (policy.user !== "host")
    throw new BrigError(`the policy ${loaded.name} says itself whom commands run as: ${policy.user}`, {
      code: "usage.invalid",
      hint: "leave out --user, or use --sandbox workspace-write",
    });
  return { ...loaded, policy: { ...policy, user } };
}

/** Full access that still protects what the given policy protects. */
export async function loadFullAccess({
  protectsLike,
}: {
  protectsLike: LoadedPolicy;
}): Promise<LoadedPolicy> {
  return protecting(await loadPolicy("danger-full-access"), await protectedNames(protectsLike));
}

/** A read-only policy does not have to name what it protects, so the names of workspace-write are used. */
async function protectedNames({ name, policy: { workspace } }: LoadedPolicy): Promise<string[]> {
  if (workspace.access === "rw" || name === DEFAULT_MODE) return workspace.protected;
  return (await loadPolicy(DEFAULT_MODE)).policy.workspace.protected;
}

function protecting(loaded: LoadedPolicy, names: readonly string[]): LoadedPolicy {
  const { policy } = loaded;
  const all = [...new Set([...policy.workspace.protected, ...names])];
  return { ...loaded, policy: { ...policy, workspace: { ...policy.workspace, protected: all } } };
}

async function loadNamedPolicy({
  mode,
  policyFile,
  network,
}: Omit<PolicyChoice, "user" | "protectsLike">): Promise<LoadedPolicy> {
  if (mode !== undefined && policyFile !== undefined)
    throw new BrigError("a mode and a policy file were both given", {
      code: "usage.invalid",
      hint: "leave one of them out",
    });
  const loaded = await loadPolicy(policyFile ?? mode ?? DEFAULT_MODE);
  if (network === undefined) return loaded;
  const parsed = parseNetwork(network);
  if (parsed.kind === "refused")
    throw new BrigError(
      `the network setting ${JSON.stringify(network)} is not valid: ${reasonAfterName(network, parsed.reason)}`,
      { code: "usage.invalid" },
    );
  if (!loaded.policy.overrides.network && !isWithinNetwork(parsed.network, loaded.policy.network))
    throw new BrigError(`the policy ${loaded.name} does not let the network be opened`, {
      code: "usage.invalid",
      hint: "leave out --network, or use --sandbox workspace-write",
    });
  return { ...loaded, policy: { ...loaded.policy, network: parsed.network } };
}
