import type { AgentRole, AgentRoleConfig, AgentsOptions, Config } from "../../agent/index.js";
import { rolesIn } from "../../agent/index.js";
import type { ToolGates } from "../../tools/index.js";

/** The functions with which a session opens models and sandboxes for its agents. */
interface AgentParts extends Pick<AgentsOptions, "openModel" | "home" | "inMode" | "canFork"> {
  gates: ToolGates;
}

/** Returns undefined if agents are turned off. Error: `config.invalid` if the file of a role is invalid. */
export async function configuredAgents(
  { agents }: Config,
  { gates, ...parts }: AgentParts,
): Promise<AgentsOptions | undefined> {
  if (gates.multi_agent === false || agents.max_depth === 0) return undefined;
  const roles = Object.entries(rolesIn(agents)).map(async ([name, role]) => [name, await roleOf(name, role)]);
  return {
    maxDepth: agents.max_depth,
    maxThreads: agents.max_threads,
    maxTokens: agents.max_tokens,
    maxTimeMs: agents.max_time_ms,
    models: agents.models,
    roles: Object.fromEntries(await Promise.all(roles)),
    ...parts,
  };
}

/** The keys of the role's table take precedence over those in its `config_file`. */
async function roleOf(name: string, { config_file: file, ...table }: AgentRoleConfig): Promise<AgentRole> {
  const inFile = file === undefined ? {} : await readRole(file);
  const set = Object.fromEntries(Object.entries(table).filter(([, value]) => value !== undefined));
  const role: AgentRoleConfig = { ...inFile, ...set };
  return {
    description: role.description ?? `The role ${name}.`,
    model: role.model,
    reasoningEffort: role.model_reasoning_effort,
    instructions: role.developer_instructions,
    sandboxMode: role.sandbox_mode,
    approvalPolicy: role.approval_policy,
    nicknames: role.nickname_candidates,
  };
}

/** The code that reads role files is loaded only if a role has one. */
async function readRole(file: string): Promise<AgentRoleConfig> {
  const { readRoleFile } = await import("../../agent/index.js");
  return await readRoleFile(file);
}
