import { BrigError } from "../../errors.js";
import { excessOver, type SessionAuthority } from "../../policy/session-authority.js";
import type { SessionSetting } from "../../session/setting.js";
import type { ToolRegistry } from "../../tools/registry.js";

export function authorityOf(
  setting: SessionSetting,
  tools: ToolRegistry,
  protectedNames: readonly string[] = [],
): SessionAuthority {
  const { sandboxMode, approvalPolicy = "never", network, cwd, writableRoots } = setting;
  return {
    sandboxMode,
    approvalPolicy,
    network,
    workspace: cwd,
    writableRoots,
    protectedNames,
    tools: tools.getSpecs().map((spec) => ("name" in spec ? spec.name : spec.type)),
  };
}

/** Throws `policy.invalid` for a session that may do more than the one that starts it. */
export function checkAgainstParent(parent: SessionAuthority, child: SessionAuthority): void {
  const excess = excessOver(parent, child);
  if (excess.length === 0) return;
  throw new BrigError(`a session may not do more than the one that starts it: ${excess.join(", ")}`, {
    code: "policy.invalid",
    hint: "give it a setting that is no weaker than its parent's",
  });
}
