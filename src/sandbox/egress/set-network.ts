import { BrigError } from "../../errors.js";
import { parseNetwork } from "../../policy/network.js";
import type { SandboxEgress } from "./sandbox-egress.js";

/** Errors: `usage.invalid`, `policy.not-enforced`. */
export function setNetwork(egress: SandboxEgress | null, text: string): void {
  const parsed = parseNetwork(text);
  if (parsed.kind === "refused")
    throw new BrigError(`the network setting ${JSON.stringify(text)} is not valid: ${parsed.reason}`, {
      code: "usage.invalid",
    });
  if (egress === null)
    throw new BrigError("the network of this sandbox cannot change: it was created without an allow-list", {
      code: "policy.not-enforced",
      hint: "create it with a network such as allowlist:@npm, or with allowlist: and no hosts yet",
    });
  egress.set(parsed.network);
}
