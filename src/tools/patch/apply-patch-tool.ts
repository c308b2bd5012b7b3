import { z } from "zod";
import { jsonOutput, sectionedOutput } from "../command/command-output.js";
import { barePatchReason, type PatchCommand } from "../command/read-command.js";
import {
  type ArgumentsOf,
  defineTool,
  type Reviewed,
  type SandboxAccess,
  type WorkingDirectory,
  workdirOf,
} from "../define-tool.js";
import { unreviewed } from "../review/approval.js";
import { RETRY_DECLINED } from "../review/reviewed-action.js";
import { failure, type Tool, type ToolCallOptions, type ToolOutput } from "../tool.js";
import type { PatchChange } from "./apply-edits.js";
import { patchGrammar } from "./patch-format.js";
import { type Patcher, type PatchOutcome, pathsOf, ReadPatch } from "./patcher.js";
import { applyReviewedPatch, type PatchReview } from "./reviewed-patch.js";

export interface ApplyPatchToolOptions {
  cwd: string;
  /** "freeform" (default): the input is the patch itself. "function": the patch is the argument `input`. */
  form?: PatchOutputForm | undefined;
  /** Decides about patches. Default: all are applied in the sandbox. */
  review?: PatchReview | undefined;
  /** The tool that the model called. Default: `apply_patch`. */
  calledTool?: string | undefined;
}

const purpose = "Edits files: adds, changes, moves and deletes them, several in one patch.";
const patchParameters = z.object({
  input: z.string().describe("The whole patch, from `*** Begin Patch` to `*** End Patch`."),
});

/** Patches may run at the same time, but those with a path in common wait for each other. */
export function applyPatchTool(
  patcher: Patcher,
  { cwd, form = "freeform", review = unreviewedPatches, calledTool = "apply_patch" }: ApplyPatchToolOptions,
): Tool<ToolOutput, ArgumentsOf<typeof patchParameters>> {
  const description =
    form === "function"
      ? `${purpose}\n\n${formatGuide}`
      : `${purpose} The input is the patch itself as plain text: do not wrap it in JSON.`;
  const format = { type: "grammar", syntax: "lark", definition: patchGrammar } as const;
  const name = "apply_patch";
  return defineTool({
    name,
    description,
    parameters: patchParameters,
    supportsParallel: true,
    isFreeform: true,
    spec: form === "function" ? undefined : { type: "custom", name, description, format },
    changedFiles: ({ input }) => pathsOf(input, cwd),
    async run({ input }, call) {
      const patch = { tool: calledTool, text: input, cwd };
      const reviewed = await applyReviewedPatch({ ...review, patcher }, patch, call);
      if (reviewed.kind === "refused")
        return failure(reviewed.reason.by === "user" ? "patch rejected by user" : reviewed.reason.text);
      const { outcome, isRetryDeclined } = reviewed;
      const content = patchOutput(isRetryDeclined ? withNote(outcome) : outcome, form);
      return { content, success: outcome.kind === "applied" };
    },
  });
}

const unreviewedPatches: PatchReview = {
  review: unreviewed,
  escalatedFiles: () => Promise.reject(new TypeError("a patch that nobody reviews stays in the sandbox")),
};

function withNote(outcome: PatchOutcome): PatchOutcome {
  if (outcome.kind !== "failed" && outcome.kind !== "refused") return outcome;
  return { ...outcome, reason: outcome.reason + RETRY_DECLINED.trimEnd() };
}

const formatGuide = `A patch looks like this:

*** Begin Patch
*** Update File: src/greeting.py
*** Move to: src/welcome.py
@@ class Greeter:
 def greet(name):
-    return "Hi"
+    return f"Hi {name}"
@@
 # end
+print(greet("you"))
*** End of File
*** Add File: notes.txt
+one line
*** Delete File: old.txt
*** End Patch

Paths are relative to the working directory. "Add File" gives the whole text, every line after a "+"; a file that is there is replaced. "Delete File" stands alone. "Update File" may be followed by "Move to", and then has one or more places to change. A place starts with "@@", optionally with a line that comes before it, such as the head of the class or function it is in, and consists of lines that start with " " (stays), "-" (goes) or "+" (is new). Give about three lines around a change, as they are in the file, so that the first such place after the one before it is the right one. "*** End of File" after a place says that it is the end of the file.`;

/** The form of the tool. Its output is sections of text if it is freeform, and JSON if it is a function. */
export type PatchOutputForm = "freeform" | "function";

export function patchOutput(outcome: PatchOutcome, form: PatchOutputForm): string {
  const format = form === "freeform" ? sectionedOutput : jsonOutput;
  switch (outcome.kind) {
    case "empty":
      return "patch rejected: empty patch";
    case "refused":
      return `apply_patch verification failed: ${outcome.reason}`;
    case "failed":
      return format({ exitCode: 1, durationMs: outcome.durationMs }, `${outcome.reason}\n`);
    case "applied":
      return format({ exitCode: 0, durationMs: outcome.durationMs }, summary(outcome.changes));
  }
}

/** Additions first, then updates, then deletions, each in the order of the patch. */
export function summary(changes: readonly PatchChange[]): string {
  const lines = letters.flatMap(([kind, letter]) =>
    changes.filter((change) => change.kind === kind).map(({ name }) => `${letter} ${name}\n`),
  );
  return ["Success. Updated the following files:\n", ...lines].join("");
}

const letters: readonly (readonly [PatchChange["kind"], string])[] = [
  ["add", "A"],
  ["update", "M"],
  ["delete", "D"],
];

export interface PatchInterceptionNeeds extends SandboxAccess, Reviewed {
  readonly patcher: Patcher;
  /** Null if `apply_patch` is off. */
  readonly patchForm: PatchOutputForm | null;
}

interface PatchToIntercept {
  /** The tool that the model called. */
  tool: string;
  patch: PatchCommand;
  cwd: string;
}

/** Applies the patch of a command that does nothing else, as Codex does. Returns null if `apply_patch` is off. */
export async function interceptPatch(
  needs: PatchInterceptionNeeds,
  { tool, patch, cwd }: PatchToIntercept,
  call: ToolCallOptions,
): Promise<ToolOutput | null> {
  if (needs.patchForm === null) return null;
  if (patch.kind === "bare-patch") return failure(`apply_patch verification failed: ${barePatchReason}`);
  call.onActivity?.({ kind: "advice", text: adviceFor(tool) });
  const patchTool = applyPatchTool(needs.patcher, {
    cwd: workdirOf({ cwd }, patch.directory),
    form: needs.patchForm,
    review: patchReviewOf(needs),
    calledTool: tool,
  });
  return await patchTool.execute({ input: patch.patch }, call);
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

/** The result of `applyPatch`; `content` is both texts. */
export interface ApplyPatchResult extends ToolOutput {
  stdout: string;
  stderr: string;
}

const anyPatchParameters = z.object({
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
): Tool<ApplyPatchResult, ArgumentsOf<typeof anyPatchParameters>> {
  return defineTool({
    name: "applyPatch",
    description: "Applies a unified diff or a patch to files.",
    parameters: anyPatchParameters,
    supportsParallel: true,
    run: async ({ patch, cwd }, { signal }) =>
      resultOf(await needs.patcher.apply(ReadPatch.readAny(patch, workdirOf(needs, cwd)), { signal })),
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
