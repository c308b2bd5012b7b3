import type { ModelClient } from "../model/model-client.js";
import { profileOf } from "../model/model-profile.js";
import type { SessionSetting } from "../session/setting.js";
import { createToolRegistry, type ToolRegistry, type ToolRegistryOptions } from "../tools/registry.js";
import { mergeGates } from "../tools/tool-gates.js";
import type { AgentSandbox } from "./agent-sandbox.js";
import { functionGates } from "./function-gates.js";

/** What brig's own tools are to know of the session they work for. */
export interface ToolUse extends Omit<ToolRegistryOptions, "cwd" | "environment"> {
  model: ModelClient;
  setting: SessionSetting;
  threadId: string;
}

/** Brig's tools as the model takes them; what the options say of a tool stands above what is known of the model. */
export function openSessionTools(
  sandbox: Promise<AgentSandbox>,
  { model, setting, threadId, ...options }: ToolUse,
): ToolRegistry {
  const profile = profileOf(model.model);
  const gates = mergeGates([
    { source: "model", gates: profile.tools },
    { source: "options", gates: options.gates ?? {} },
  ]);
  return createToolRegistry(sandbox, {
    ...options,
    takesOriginalPictures: options.takesOriginalPictures ?? profile.takesOriginalPictures ?? undefined,
    gates: model.takesOnlyFunctions === true ? { ...gates, ...functionGates(gates).gates } : gates,
    cwd: setting.cwd,
    environment: {
      CODEX_THREAD_ID: threadId,
      ...(setting.network.kind === "none" ? { CODEX_SANDBOX_NETWORK_DISABLED: "1" } : {}),
    },
  });
}
