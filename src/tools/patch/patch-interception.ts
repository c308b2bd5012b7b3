import { posix } from "node:path";
import type { ToolCallOptions, ToolOutput } from "../tool.js";
import type { Workbench } from "../workbench.js";
import { applyPatchTool } from "./apply-patch-tool.js";
import { barePatchReason, recognisePatchCommand } from "./format/patch-command.js";
import type { PatchOutputForm } from "./patch-output.js";
import type { PatchReview } from "./reviewed-patch.js";

export interface CommandToCheck {
  /** The tool that was asked to run it. */
  tool: string;
  argv: readonly string[];
  cwd: string;
}

/**
 * Applies the patch of a command that does nothing else, as models are used to; null for any other command, which is to be run, and
 * where `apply_patch` is off.
 */
export async function interceptPatch(
  bench: Workbench,
  { tool, argv, cwd }: CommandToCheck,
  call: ToolCallOptions,
): Promise<ToolOutput | null> {
  if (bench.gates.apply_patch === false) return null;
  const command = recognisePatchCommand(argv);
  if (command.kind === "other") return null;
  if (command.kind === "bare-patch")
    return { content: `apply_patch verification failed: ${barePatchReason}`, success: false };
  call.onActivity?.({ kind: "advice", text: adviceFor(tool) });
  const directory = posix.resolve(cwd, command.directory ?? "");
  const options = { cwd: directory, form: patchFormOf(bench), review: patchReviewOf(bench), askedTool: tool };
  const patch = applyPatchTool(bench.patcher, options);
  return await patch.execute({ input: command.patch }, call);
}

/** Who decides about patches in this session. */
export function patchReviewOf(bench: Pick<Workbench, "review" | "sandbox">): PatchReview {
  return {
    review: bench.review,
    escalatedFiles: async () => (await bench.sandbox("escalated")).files,
  };
}

/** How patches are asked for and answered in this session. */
export function patchFormOf({ gates }: Pick<Workbench, "gates">): PatchOutputForm {
  return gates.apply_patch === "function" ? "function" : "freeform";
}

function adviceFor(tool: string): string {
  return `Warning: apply_patch was requested via ${tool}. Use the apply_patch tool instead of exec_command.`;
}
