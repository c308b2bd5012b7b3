import { describe, expect, it } from "vitest";
import { functionGates } from "../../../src/agent/function-gates.js";
import { defaultGates, mergeGates, type ToolGates } from "../../../src/tools/tool-gates.js";

function overChat(gates: ToolGates): ToolGates {
  const asked = { source: "options", gates };
  return mergeGates([defaultGates, asked, functionGates(mergeGates([defaultGates, asked]))]);
}

describe("a model that takes functions only", () => {
  it.each([true, "freeform", "function"] as const)("has apply_patch = %s as a function", (apply_patch) => {
    expect(overChat({ apply_patch })).toMatchObject({ apply_patch: "function" });
  });

  it("has no apply_patch where that is off", () => {
    expect(overChat({ apply_patch: false })).toMatchObject({ apply_patch: false });
  });

  it("runs commands with shell where it would have with local_shell", () => {
    expect(overChat({ shell: "local" })).toMatchObject({ shell: "default" });
  });

  it.each(["unified_exec", "shell_command", "default", "disabled"] as const)("keeps shell = %s", (shell) => {
    expect(overChat({ shell })).toMatchObject({ shell });
  });

  it.each(["live", "cached", undefined] as const)("has no search of the provider's for %s", (web_search) => {
    expect(overChat({ web_search })).toMatchObject({ web_search: "disabled" });
  });

  it("keeps everything else", () => {
    expect(overChat({ read_file: false, js_repl: true })).toMatchObject({ read_file: false, js_repl: true });
  });
});
