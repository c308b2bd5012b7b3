import { BrigError } from "../../errors.js";
import { loadPolicy } from "../policy/load-policy.js";
import { DEFAULT_MODE } from "../policy/modes.js";
import { isWithinNetwork, type NetworkScope, parseNetwork, reasonAfterName } from "../policy/network.js";
import type { LoadedPolicy } from "../policy/policy.js";
import type { PolicyChoice } from "../settings/chosen-policy.js";
import type { SandboxSetup } from "../settings/sandbox-settings.js";

/** A set-up as it is asked for. */
export interface SetupChoice {
  /** A program and its arguments. */
  command: readonly string[];
  /** Default: the network of the sandbox. */
  network?: string | undefined;
  /** Default: ten minutes. */
  timeoutMs?: number | undefined;
}

const SETUP_TIMEOUT_MS = 600_000;

/**
 * Checks the network of a set-up: it may be another one than the sandbox's own, but no more than the policy lets anybody have.
 * Error: `usage.invalid`.
 */
export async function resolveSetup(
  { command, network, timeoutMs = SETUP_TIMEOUT_MS }: SetupChoice,
  { chosen, choice }: { chosen: LoadedPolicy; choice: PolicyChoice },
): Promise<SandboxSetup> {
  if (command.length === 0 || command[0] === "")
    throw new BrigError("the command of the set-up is empty", {
      code: "usage.invalid",
      hint: 'name a program, such as command = ["npm", "ci"]',
    });
  const own = chosen.policy.network;
  if (network === undefined) return { argv: command, network: own, timeoutMs };
  const wanted = parsed(network);
  if (wanted.kind !== own.kind && [wanted.kind, own.kind].includes("full"))
    throw new BrigError(
      `the set-up cannot have the network "${network}" in a sandbox whose own is ${own.kind === "full" ? "full" : "not"}`,
      {
        code: "usage.invalid",
        hint: "a network interface is there for the whole of a sandbox, or not at all; for every public host use allowlist:@public",
      },
    );
  await requirePermitted(wanted, { chosen, choice });
  return { argv: command, network: wanted, timeoutMs };
}

function parsed(text: string): NetworkScope {
  const network = parseNetwork(text);
  if (network.kind === "refused")
    throw new BrigError(
      `the network setting ${JSON.stringify(text)} of the set-up is not valid: ${reasonAfterName(text, network.reason)}`,
      {
        code: "usage.invalid",
      },
    );
  if (network.network.kind === "allowlist" && network.network.learns === true)
    throw new BrigError("the network of a set-up cannot be learned", {
      code: "usage.invalid",
      hint: "use allowlist:@public, and look at brig sessions egress, or learn in the whole session",
    });
  return network.network;
}

/** The network of the chosen policy may be less than the policy permits, and its set-up may have all of that. */
async function requirePermitted(
  wanted: NetworkScope,
  { chosen, choice: { policyFile, mode } }: { chosen: LoadedPolicy; choice: PolicyChoice },
): Promise<void> {
  if (chosen.policy.overrides.network) return;
  const { policy } = await loadPolicy(policyFile ?? mode ?? DEFAULT_MODE);
  if (!policy.overrides.network && isWithinNetwork(wanted, policy.network)) return;
  throw new BrigError(`the policy ${chosen.name} does not let the network be opened for a set-up`, {
    code: "usage.invalid",
    hint: "leave out the network of the set-up, or use another policy",
  });
}
