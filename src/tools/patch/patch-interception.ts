import type { ToolCallOptions, ToolOutput } from "../tool.js";
import { failure } from "../tool-failure.js";
import { type Reviewed, type SandboxAccess, type WorkingDirectory, workdirOf } from "../tool-needs.js";
import { applyPatchTool } from "./apply-patch-tool.js";
import { barePatchReason, recognisePatchCommand } from "./format/patch-command.js";
import type { PatchOutputForm } from "./patch-output.js";
import type { Patcher } from "./patcher.js";
import type { PatchReview } from "./reviewed-patch.js";

export interface PatchInterceptionNeeds extends SandboxAccess, Reviewed {
  readonly patcher: Patcher;
  /** Null if `apply_patch` is off. */
  readonly patchForm: PatchOutputForm | null;
}

export interface CommandToCheck {
  tool: string;
  argv: readonly string[];
  cwd: string;
}

/**
 * If a command only applies a patch, brig applies it itself, as Codex does. Returns null for any other
 * command, and if `apply_patch` is off.
 */
export async function interceptPatch(
  needs: PatchInterceptionNeeds,
  { tool, argv, cwd }: CommandToCheck,
  call: ToolCallOptions,
): Promise<ToolOutput | null> {
  if (needs.patchForm === null) return null;
  const command = recognisePatchCommand(argv);
  if (command.kind === "other") return null;
  if (command.kind === "bare-patch") return failure(`apply_patch verification failed: ${barePatchReason}`);
  call.onActivity?.({ kind: "advice", text: adviceFor(tool) });
  const patchTool = applyPatchTool(needs.patcher, {
    cwd: workdirOf({ cwd }, command.directory),
    form: needs.patchForm,
    review: patchReviewOf(needs),
    calledTool: tool,
  });
  return await patchTool.execute({ input: command.patch }, call);
}

/** Programs can call `apply_patch` even if it is off for the model. */
export function sessionPatchTool(
  needs: PatchInterceptionNeeds & WorkingDirectory,
): ReturnType<typeof applyPatchTool> {
  return applyPatchTool(needs.patcher, {
    cwd: needs.cwd,
    form: needs.patchForm ?? "freeform",
    review: patchReviewOf(needs),
  });
}

function patchReviewOf(needs: SandboxAccess & Reviewed): PatchReview {
  return {
    review: needs.review,
    escalatedFiles: async () => (await needs.sandbox("escalated")).files,
  };
}

function adviceFor(tool: string): string {
  return `Warning: apply_patch was requested via ${tool}. Use the apply_patch tool instead of exec_command.`;
}
