import { z } from "zod";
import { suggest } from "../../lib/suggest.js";

/** The approval policies by the names that the command line takes. strictness.ts says which is stricter. */
export const APPROVAL_POLICIES = ["untrusted", "on-failure", "on-request", "never"] as const;

export const granularSchema = z.strictObject({
  granular: z.strictObject({
    sandbox_approval: z.boolean().default(false).describe("Ask for commands; false refuses them instead"),
    rules: z.boolean().default(false).describe("Ask if a rule says so; there are no rule files yet"),
    skill_approval: z.boolean().default(false).describe("Known to Codex; has no effect in brig"),
    request_permissions: z.boolean().default(false).describe("Known to Codex; has no effect in brig"),
    mcp_elicitations: z.boolean().default(false).describe("Pass on the questions of MCP servers"),
  }),
});

/** Decides when a person is asked about a command, and when it is refused instead. */
export type ApprovalPolicy = (typeof APPROVAL_POLICIES)[number] | GranularPolicy;

/** The kinds of questions that are asked; the others are refused. */
export type GranularPolicy = z.infer<typeof granularSchema>;

export type ApprovalPolicyParse =
  | { kind: "parsed"; policy: ApprovalPolicy }
  | { kind: "refused"; reason: string };

/** Reads the value of a flag or of `approval_policy`: a name, or the table `{ granular = { … } }`. */
export function parseApprovalPolicy(source: unknown): ApprovalPolicyParse {
  const named = APPROVAL_POLICIES.find((name) => name === source);
  if (named !== undefined) return { kind: "parsed", policy: named };
  const names = APPROVAL_POLICIES.join(", ");
  if (typeof source === "string") {
    const meant = suggest(source, APPROVAL_POLICIES);
    const hint = meant === null ? `use one of ${names}` : `did you mean ${meant}?`;
    return { kind: "refused", reason: `"${source}" is not an approval policy: ${hint}` };
  }
  const granular = granularSchema.safeParse(source);
  if (granular.success) return { kind: "parsed", policy: granular.data };
  const problems = z.prettifyError(granular.error);
  return {
    kind: "refused",
    reason: `an approval policy is one of ${names}, or { granular = { … } }:\n${problems}`,
  };
}

export function nameOfPolicy(policy: ApprovalPolicy): string {
  return typeof policy === "string" ? policy : "granular";
}
