import { z } from "zod";

/** Parameters with which a model asks to leave the sandbox. */
export const escalationParameters = {
  sandbox_permissions: z
    .enum(["use_default", "require_escalated"])
    .optional()
    .describe("`require_escalated` asks to run outside the sandbox's limits. Default: use_default."),
  justification: z
    .string()
    .optional()
    .describe("With require_escalated: one sentence that asks the user for it, as a question."),
  prefix_rule: z
    .array(z.string())
    .optional()
    .describe("With require_escalated: a command prefix that could be allowed in the future."),
};

/**
 * The refusal of a request to escalate, or null when none was made. There is nobody to approve one, so the approval policy is
 * always `never`.
 */
export function refusedEscalation(
  args: { sandbox_permissions?: "use_default" | "require_escalated" | undefined },
  verb: "should not" | "cannot",
): string | null {
  if (args.sandbox_permissions !== "require_escalated") return null;
  return `approval policy is Never; reject command — you ${verb} ask for escalated permissions if the approval policy is Never`;
}
