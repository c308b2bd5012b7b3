import { BrigError } from "../../errors.js";
import type { SessionAuthority } from "../../sandbox/index.js";
import { excessOver } from "../../sandbox/index.js";
import type { ToolRegistry } from "../../tools/index.js";
import type { ConversationOptions } from "../conversation-options.js";
import type { SessionSetting } from "../session/setting.js";

export function authorityOf(
  setting: SessionSetting,
  tools: ToolRegistry,
  { mcpServers, parent }: Pick<ConversationOptions, "mcpServers" | "parent">,
): SessionAuthority {
  const { sandboxMode, approvalPolicy = "never", network, cwd, writableRoots } = setting;
  return {
    sandboxMode,
    approvalPolicy,
    network,
    workspace: cwd,
    writableRoots,
    protectedNames: parent?.protectedNames ?? [],
    tools: tools.getSpecs().map((spec) => ("name" in spec ? spec.name : spec.type)),
    hasMcpServers: mcpServers !== undefined,
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
