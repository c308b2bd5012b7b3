import { z } from "zod";
import { milliseconds, unused } from "../../lib/setting-kinds.js";
import { APPROVAL_POLICIES, granularSchema, SANDBOX_MODES } from "../../sandbox/index.js";

const filled = z.string().min(1);

export const agentRoleSchema = z.object({
  description: filled.optional().describe("When a model should choose this role"),
  config_file: filled.optional().describe("A file with any of the other keys of this table, in TOML"),
  model: filled.optional().describe("The model of such an agent").meta({ fallback: "the session's" }),
  model_reasoning_effort: filled
    .optional()
    .describe("Its reasoning effort")
    .meta({ fallback: "the session's" }),
  developer_instructions: filled.optional().describe("Instructions in addition to the session's"),
  sandbox_mode: z
    .enum(SANDBOX_MODES)
    .optional()
    .describe(
      "The sandbox mode of such an agent, which may not be looser than the session's; a container of its own",
    )
    .meta({ fallback: "the session's, in its container" }),
  approval_policy: z
    .union([z.enum(APPROVAL_POLICIES), granularSchema])
    .optional()
    .describe("The approval policy of such an agent, which may not be looser than the session's")
    .meta({ fallback: "the session's" }),
  nickname_candidates: z.array(filled).optional().describe("Names to give to such agents"),
});

const limits = {
  max_depth: z
    .int()
    .min(0)
    .max(16)
    .default(1)
    .describe("How deep agents may be nested: 0 for none, 1 for agents that start no further ones"),
  max_threads: z
    .int()
    .min(1)
    .max(64)
    .default(6)
    .describe("How many agents of a session may be open at the same time"),
  max_tokens: z
    .int()
    .min(1)
    .optional()
    .describe("How many tokens all agents of a session together may use")
    .meta({ fallback: "no limit" }),
  max_time_ms: milliseconds
    .optional()
    .describe("How many milliseconds the turns of all agents of a session together may take")
    .meta({ fallback: "no limit" }),
  models: z
    .array(filled)
    .default([])
    .describe("Models that an agent can be started with, besides the session's own and those of roles"),
  job_max_runtime_seconds: unused,
};

/** Codex has the roles in the same table as the limits. */
export const agentsSchema = z.object(limits).catchall(agentRoleSchema);

export type AgentRoleConfig = z.output<typeof agentRoleSchema>;

/** The roles of an `agents` table, by name. */
export function rolesIn(agents: Readonly<Record<string, unknown>>): Record<string, AgentRoleConfig> {
  return Object.fromEntries(
    Object.entries(agents).filter(([name]) => !Object.hasOwn(limits, name)),
  ) as Record<string, AgentRoleConfig>;
}
