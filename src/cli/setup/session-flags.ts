import type { AgentSettings } from "../../agent/index.js";
import type { AgentFlags, CliContext } from "../../command/index.js";
import { agentSettings } from "../../command/index.js";

/** The flags of a session, which works in a sandbox of its own, or in the one of `--in`. */
export interface SessionFlags extends AgentFlags {
  in?: string;
}

/** The settings that the flags choose. Errors: those of `agentSettings` and `settingsWithin`. */
export async function runSettings(flags: SessionFlags, context: CliContext): Promise<AgentSettings> {
  if (flags.in === undefined) return await agentSettings(flags, context);
  const { settingsWithin } = await import("../lasting/run-in.js");
  return await settingsWithin(flags.in, flags, context);
}
