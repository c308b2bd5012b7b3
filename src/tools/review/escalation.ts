import { z } from "zod";
import type { ParameterAliases } from "../define-tool.js";
import type { EscalationRequest } from "./action.js";
import type { ActionReview } from "./approval.js";

/** The parameters with which a model asks to leave the sandbox. */
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

/** The parameter that older models use instead of `sandbox_permissions`. */
export const escalationAliases: ParameterAliases = {
  with_escalated_permissions: {
    parameter: "sandbox_permissions",
    convert: (value) => (value === true ? "require_escalated" : "use_default"),
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

const UNUSED_JUSTIFICATION =
  '`justification` requires an explicit `sandbox_permissions`; use `sandbox_permissions: "require_escalated"` for unsandboxed ' +
  "execution, or omit `justification`.";

/** Refuses a request to leave the sandbox if none are allowed, and a justification without a request. */
export function refusedEscalation(
  review: ActionReview,
  tool: string,
  args: EscalationArguments,
): string | null {
  if (args.justification !== undefined && args.sandbox_permissions === undefined) return UNUSED_JUSTIFICATION;
  return escalationOf(args).isAsked ? review.escalationRefusal(tool) : null;
}
