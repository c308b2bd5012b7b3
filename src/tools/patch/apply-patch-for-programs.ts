import { z } from "zod";
import { type ArgumentsOf, defineTool } from "../define-tool.js";
import type { Tool, ToolOutput } from "../tool.js";
import { type WorkingDirectory, workdirOf } from "../tool-needs.js";
import { summary } from "./patch-output.js";
import type { Patcher, PatchOutcome } from "./patcher.js";

/** The result of `applyPatch`; `content` is both texts. */
export interface ApplyPatchResult extends ToolOutput {
  stdout: string;
  stderr: string;
}

const parameters = z.object({
  patch: z
    .string()
    .describe(
      "A unified diff, or a patch from `*** Begin Patch` to `*** End Patch`, also inside a shell heredoc.",
    ),
  cwd: z.string().optional().describe("Directory that relative paths start from. Default: the session's."),
});

/** Like `apply_patch`, but for programs: also accepts unified diffs, and separates results and errors. */
export function applyPatchForPrograms(
  needs: WorkingDirectory & { patcher: Patcher },
): Tool<ApplyPatchResult, ArgumentsOf<typeof parameters>> {
  return defineTool({
    name: "applyPatch",
    description: "Applies a unified diff or a patch to files.",
    parameters,
    supportsParallel: true,
    run: async ({ patch, cwd }, { signal }) =>
      resultOf(await needs.patcher.applyAnyPatch(patch, { cwd: workdirOf(needs, cwd), signal })),
  });
}

function resultOf(outcome: PatchOutcome): ApplyPatchResult {
  if (outcome.kind === "applied") {
    const stdout = summary(outcome.changes);
    return { success: true, stdout, stderr: "", content: stdout };
  }
  const stderr = `${outcome.kind === "empty" ? "No files were modified." : outcome.reason}\n`;
  return { success: false, stdout: "", stderr, content: stderr };
}
