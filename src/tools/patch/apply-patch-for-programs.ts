import { posix } from "node:path";
import { z } from "zod";
import { type ArgumentsOf, defineTool } from "../define-tool.js";
import type { Tool, ToolCallOptions, ToolOutput } from "../tool.js";
import { summary } from "./patch-output.js";
import type { Patcher, PatchOutcome } from "./patcher.js";

/** What `applyPatch` tells a program; `content` is both texts. */
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

/** `applyPatch`, for programs: as `apply_patch`, but takes unified diffs too and keeps results and errors apart. */
export function applyPatchFace(
  patcher: Patcher,
  { cwd }: { cwd: string },
): Tool<ApplyPatchResult, ArgumentsOf<typeof parameters>> {
  const run = async (args: z.output<typeof parameters>, { signal }: ToolCallOptions) =>
    resultOf(await patcher.applyAnyPatch(args.patch, { cwd: posix.resolve(cwd, args.cwd ?? ""), signal }));
  return defineTool({
    name: "applyPatch",
    description: "Applies a unified diff or a patch to files.",
    parameters,
    supportsParallel: true,
    run,
  });
}

function resultOf(outcome: PatchOutcome): ApplyPatchResult {
  const stdout = outcome.kind === "applied" ? summary(outcome.changes) : "";
  const stderr =
    outcome.kind === "applied"
      ? ""
      : `${outcome.kind === "empty" ? "No files were modified." : outcome.reason}\n`;
  return { success: outcome.kind === "applied", stdout, stderr, content: stdout + stderr };
}
