import type { CompactionOptions, Config, ContextOptions, ProjectDocsOptions } from "../../agent/index.js";
import { profileOf, readInstructionsFile } from "../../agent/index.js";
import type { TruncationPolicy } from "../../sandbox/index.js";
import { BYTES_PER_TOKEN } from "../../sandbox/index.js";
import type { Environment } from "../../lib/env.js";

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
