import type { ToolRegistry, ToolRegistryOptions } from "../tools/index.js";
import { createToolRegistry, mergeGates } from "../tools/index.js";
import type { AgentSandbox } from "./agent-sandbox.js";
import { functionGates } from "./function-gates.js";
import type { ModelClient } from "./model/model-client.js";
import { profileOf } from "./model/model-profile.js";
import type { SessionSetting } from "./session/setting.js";

interface SessionToolOptions extends Omit<ToolRegistryOptions, "cwd" | "environment"> {
  model: ModelClient;
  setting: SessionSetting;
  threadId: string;
}

/** Opens brig's tools as the model can use them. */
export function openSessionTools(
  sandbox: Promise<AgentSandbox>,
  { model, setting, threadId, ...options }: SessionToolOptions,
): ToolRegistry {
  return createToolRegistry(sandbox, {
    ...options,
    ...toolsForModel(model, options),
    cwd: setting.cwd,
    environment: commandEnvironment(setting, threadId),
  });
}

/** What of the tools depends on the model. `gates` takes precedence over the model's profile. */
export function toolsForModel(
  model: ModelClient,
  options: Pick<ToolRegistryOptions, "gates" | "takesOriginalPictures">,
): Pick<ToolRegistryOptions, "gates" | "takesOriginalPictures" | "usesNamespaces"> {
  const profile = profileOf(model.model);
  const gates = mergeGates([
    { source: "model", gates: profile.tools },
    { source: "options", gates: options.gates ?? {} },
  ]);
  const takesOnlyFunctions = model.takesOnlyFunctions === true;
  return {
    usesNamespaces: profile.usesNamespaces && !takesOnlyFunctions,
    takesOriginalPictures: options.takesOriginalPictures ?? profile.takesOriginalPictures ?? undefined,
    gates: takesOnlyFunctions ? { ...gates, ...functionGates(gates).gates } : gates,
  };
}

/** Variables that every command of a session gets in addition to those of the sandbox. */
export function commandEnvironment({ network }: SessionSetting, threadId: string): Record<string, string> {
  return {
    CODEX_THREAD_ID: threadId,
    ...(network.kind === "none" ? { CODEX_SANDBOX_NETWORK_DISABLED: "1" } : {}),
  };
}
