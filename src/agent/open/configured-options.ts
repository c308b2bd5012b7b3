import type { Environment } from "../../lib/env.js";
import type { TruncationPolicy } from "../../sandbox/index.js";
import { BYTES_PER_TOKEN } from "../../sandbox/index.js";
import type { ToolGates } from "../../tools/index.js";
import type { AgentRole, AgentsOptions } from "../agents/agents-options.js";
import type { CompactionOptions } from "../compaction/compactor.js";
import { type AgentRoleConfig, rolesIn } from "../config/agents-schema.js";
import type { Config } from "../config/config-schema.js";
import type { ContextOptions } from "../context/context-messages.js";
import { readInstructionsFile } from "../context/instructions-file.js";
import type { ProjectDocsOptions } from "../context/project-docs.js";
import { profileOf } from "../model/model-profile.js";

// How the configuration shapes the options of a conversation.

/** The places in which AGENTS.md files are searched for. */
export interface ContextPlace {
  environment: Pick<Environment, "brigHome" | "codexHome">;
  /** Whether the working directory is on this machine, in the image, or not specified at all. */
  cwd: "host" | "image" | "none";
}

/** How the configuration shapes the context messages that precede the conversation. */
export function configuredContext(
  config: Config,
  place: ContextPlace,
): ContextOptions & { projectDocs: ProjectDocsOptions } {
  return {
    developerInstructions: config.developer_instructions,
    userInstructions: config.instructions,
    includesEnvironment: config.include_environment_context,
    includesPermissions: config.include_permissions_instructions,
    projectDocs: {
      homes: [place.environment.brigHome, place.environment.codexHome],
      maxBytes: place.cwd === "none" ? 0 : config.project_doc_max_bytes,
      fallbackFilenames: config.project_doc_fallback_filenames,
      rootMarkers: config.project_root_markers,
      isOnHost: place.cwd === "host",
    },
  };
}

export function configuredCompaction(config: Config): CompactionOptions {
  return {
    contextWindowTokens: config.model_context_window,
    autoCompactTokens: config.model_auto_compact_token_limit,
    prompt: config.compact_prompt,
  };
}

/** The text of `file` or of the configuration's file. Undefined means brig's own instructions. */
export async function configuredInstructions(
  config: Config,
  { file }: { file?: string | undefined } = {},
): Promise<string | undefined> {
  const path = file ?? config.model_instructions_file;
  return path === undefined ? undefined : await readInstructionsFile(path);
}

/** `tool_output_token_limit` is in tokens, but some models' output limits are in bytes. */
export function configuredTruncation(
  { tool_output_token_limit: tokens }: Config,
  model: string,
): TruncationPolicy | undefined {
  if (tokens === undefined) return undefined;
  return profileOf(model).truncation.mode === "tokens"
    ? { mode: "tokens", limit: tokens }
    : { mode: "bytes", limit: tokens * BYTES_PER_TOKEN };
}

/** With full access the model may use the network anyway, so a cached search becomes a live one. */
export function configuredGates(config: Config, { hasFullAccess = false } = {}): ToolGates {
  const { web_search: own, ...tools } = config.tools ?? {};
  const asked = typeof own === "boolean" ? (own ? "live" : "disabled") : own;
  const web_search = asked ?? config.web_search;
  const { multi_agent } = config.features;
  return {
    ...exploreGates(config),
    ...setOnes({ multi_agent }),
    ...setOnes(tools),
    web_search: hasFullAccess && web_search === "cached" ? "live" : web_search,
  };
}

export const exploreTools = ["read_file", "list_dir", "grep_files"] as const;

/** Codex's list of the exploration tools that are on. The `tools` table overrides it. */
function exploreGates({ experimental_supported_tools: offered }: Config): ToolGates {
  if (offered === undefined) return {};
  return Object.fromEntries(exploreTools.map((name) => [name, offered.includes(name)]));
}

function setOnes<Settings extends object>(settings: Settings): Partial<Settings> {
  return Object.fromEntries(
    Object.entries(settings).filter(([, setting]) => setting !== undefined),
  ) as Partial<Settings>;
}

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
  const { readRoleFile } = await import("../config/config-file.js");
  return await readRoleFile(file);
}
