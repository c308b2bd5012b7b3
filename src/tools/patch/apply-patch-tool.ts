import { z } from "zod";
import { type ArgumentsOf, defineTool } from "../define-tool.js";
import { unreviewed } from "../review/approval.js";
import { RETRY_DECLINED } from "../review/reviewed-action.js";
import type { Tool, ToolOutput } from "../tool.js";
import { failure } from "../tool-failure.js";
import { patchGrammar } from "./grammar.js";
import { type PatchOutputForm, patchOutput } from "./patch-output.js";
import { type Patcher, type PatchOutcome, pathsOf } from "./patcher.js";
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

const name = "apply_patch";
const purpose = "Edits files: adds, changes, moves and deletes them, several in one patch.";
const parameters = z.object({
  input: z.string().describe("The whole patch, from `*** Begin Patch` to `*** End Patch`."),
});

/** Patches may run at the same time, but those with a path in common wait for each other. */
export function applyPatchTool(
  patcher: Patcher,
  { cwd, form = "freeform", review = unreviewedPatches, calledTool = name }: ApplyPatchToolOptions,
): Tool<ToolOutput, ArgumentsOf<typeof parameters>> {
  const description =
    form === "function"
      ? `${purpose}\n\n${formatGuide}`
      : `${purpose} The input is the patch itself as plain text: do not wrap it in JSON.`;
  const format = { type: "grammar", syntax: "lark", definition: patchGrammar } as const;
  return defineTool({
    name,
    description,
    parameters,
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
