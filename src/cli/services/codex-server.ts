import type { OpenClient } from "../../services/index.js";
import type { CliContext } from "../context.js";
import type { AgentFlags } from "../setup/agent-flags.js";
import { agentSettings, sessionHost } from "../setup/agent-settings.js";

/**
 * The tools codex and codex-reply for MCP clients. One limit on open sessions holds for all clients together.
 */
export async function codexClients(
  flags: AgentFlags,
  { context, idleMinutes }: { context: CliContext; idleMinutes: number | undefined },
): Promise<OpenClient> {
  const session = { settings: await agentSettings(flags, context), host: sessionHost(context) };
  const { ThreadList, openCodexClient, prepareThread } = await import("../../services/index.js");
  const threads = new ThreadList({
    prepare: async (request, people) => await prepareThread(request, people, session),
    idleMs: idleMinutes === undefined ? undefined : idleMinutes * 60_000,
  });
  return () => openCodexClient(threads);
}
