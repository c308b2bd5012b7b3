import { z } from "zod";
import type { ParameterAliases } from "../define-tool.js";
import type { EscalationRequest } from "./action.js";
import type { ActionReview } from "./approval.js";

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

/** How models asked before there was `sandbox_permissions`. */
export const escalationAliases: ParameterAliases = {
  with_escalated_permissions: {
    parameter: "sandbox_permissions",
    read: (value) => (value === true ? "require_escalated" : "use_default"),
  },
};

interface EscalationArguments {
  sandbox_permissions?: "use_default" | "require_escalated" | undefined;
  justification?: string | undefined;
  prefix_rule?: readonly string[] | undefined;
}

export function escalationOf(args: EscalationArguments): EscalationRequest {
  return {
    isAsked: args.sandbox_permissions === "require_escalated",
    justification: args.justification ?? null,
    prefixRule: args.prefix_rule ?? null,
  };
}

const JUSTIFIES_NOTHING =
  '`justification` requires an explicit `sandbox_permissions`; use `sandbox_permissions: "require_escalated"` for unsandboxed ' +
  "execution, or omit `justification`.";

/**
 * The refusal of a request to leave the sandbox where the session has no such question, and of reasons that are given for no request;
 * else null.
 */
export function refusedEscalation(
  review: ActionReview,
  tool: string,
  args: EscalationArguments,
): string | null {
  if (args.justification !== undefined && args.sandbox_permissions === undefined) return JUSTIFIES_NOTHING;
  return escalationOf(args).isAsked ? review.escalationRefusal(tool) : null;
}
