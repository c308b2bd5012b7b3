import { posix } from "node:path";
import type { ToolCallOptions, ToolOutput } from "../tool.js";
import type { Reviewed, SandboxAccess, WorkingDirectory } from "../tool-needs.js";
import { applyPatchTool } from "./apply-patch-tool.js";
import { barePatchReason, recognisePatchCommand } from "./format/patch-command.js";
import type { PatchOutputForm } from "./patch-output.js";
import type { Patcher } from "./patcher.js";
import type { PatchReview } from "./reviewed-patch.js";

export interface PatchInterceptionNeeds extends SandboxAccess, Reviewed {
  readonly patcher: Patcher;
  /** How patches are asked for and answered in this session; null where `apply_patch` is off. */
  readonly patchForm: PatchOutputForm | null;
}

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
  needs: PatchInterceptionNeeds,
  { tool, argv, cwd }: CommandToCheck,
  call: ToolCallOptions,
): Promise<ToolOutput | null> {
  if (needs.patchForm === null) return null;
  const command = recognisePatchCommand(argv);
  if (command.kind === "other") return null;
  if (command.kind === "bare-patch")
    return { content: `apply_patch verification failed: ${barePatchReason}`, success: false };
  call.onActivity?.({ kind: "advice", text: adviceFor(tool) });
  const directory = posix.resolve(cwd, command.directory ?? "");
  const options = { cwd: directory, form: needs.patchForm, review: patchReviewOf(needs), askedTool: tool };
  const patch = applyPatchTool(needs.patcher, options);
  return await patch.execute({ input: command.patch }, call);
}

/** `apply_patch` as a model calls it. It can be called where it is off, but is not offered. */
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
