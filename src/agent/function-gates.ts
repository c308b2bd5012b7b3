import type { GateLayer, ToolGates } from "../tools/tool-gates.js";

/**
 * What has to be otherwise for a model that can be told of functions only, as over Chat Completions: a patch is a function's argument,
 * commands are run by the function `shell`, and there is no search of the provider's. Goes above everything else that was said.
 */
export function functionGates({ apply_patch, shell, web_search }: ToolGates): GateLayer {
  return {
    source: 'wire_api = "chat"',
    gates: {
      ...(apply_patch === false || apply_patch === "function" ? {} : { apply_patch: "function" }),
      ...(shell === "local" ? { shell: "default" } : {}),
      ...(web_search === "disabled" ? {} : { web_search: "disabled" }),
    },
  };
}
