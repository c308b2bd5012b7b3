import type { GateLayer, ToolGates } from "../tools/index.js";

/**
 * The changes for a model that can only call functions, as over Chat Completions: `apply_patch` becomes a
 * function, `local_shell` becomes `shell`, the tools for agents lose their namespace, and the provider's web
 * search is off. They take precedence over every other layer.
 */
export function functionGates({ apply_patch, shell, web_search, multi_agent }: ToolGates): GateLayer {
  return {
    source: 'wire_api = "chat"',
    gates: {
      ...(apply_patch === false || apply_patch === "function" ? {} : { apply_patch: "function" }),
      ...(shell === "local" ? { shell: "default" } : {}),
      ...(multi_agent === "namespace" ? { multi_agent: "functions" } : {}),
      ...(web_search === "disabled" ? {} : { web_search: "disabled" }),
    },
  };
}
