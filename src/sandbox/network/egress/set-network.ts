import { BrigError } from "../../../errors.js";
import { isWithinNetwork, parseNetwork, reasonAfterName } from "../../policy/network.js";
import type { LoadedPolicy } from "../../policy/policy.js";
import type { EgressListener, SandboxEgress, WatchEgressOptions } from "./sandbox-egress.js";

interface NetworkPlace {
  /** Null without an allow-list. */
  egress: SandboxEgress | null;
  settings: { policy: LoadedPolicy };
}

/** Errors: `usage.invalid`, also where the policy does not let the network be opened; `policy.not-enforced`. */
export function setNetwork({ egress, settings: { policy } }: NetworkPlace, text: string): void {
  const parsed = parseNetwork(text);
  if (parsed.kind === "refused")
    throw new BrigError(
      `the network setting ${JSON.stringify(text)} is not valid: ${reasonAfterName(text, parsed.reason)}`,
      { code: "usage.invalid" },
    );
  if (egress === null)
    throw new BrigError("the network of this sandbox cannot change: it was created without an allow-list", {
      code: "policy.not-enforced",
      hint: "create it with a network such as allowlist:@npm, or with allowlist: and no hosts yet",
    });
  const { overrides, network } = policy.policy;
  if (!overrides.network && !isWithinNetwork(parsed.network, network))
    throw new BrigError(`the policy ${policy.name} does not let the network be opened`, {
      code: "usage.invalid",
      hint: "name hosts that the sandbox was created with, or use another policy",
    });
  egress.set(parsed.network);
}

/** Nobody is asked about hosts that the policy does not let anybody allow. */
export function watchEgress(
  { egress, settings: { policy } }: NetworkPlace,
  listener: EgressListener,
  { ask, ...options }: WatchEgressOptions = {},
): void {
  egress?.watch(listener, policy.policy.overrides.network ? { ...options, ask } : options);
}
