import type { OpenClient } from "../../services/index.js";
import type { CliContext } from "../context.js";
import type { AgentFlags } from "../setup/agent-flags.js";

/**
 * The tools codex and codex-reply for MCP clients. One limit on open sessions holds for all clients together.
 */
export async function codexClients(
  flags: AgentFlags,
  { context, idleMinutes }: { context: CliContext; idleMinutes: number | undefined },
): Promise<OpenClient> {
  const [{ ThreadList, openCodexClient }, { prepareThread }] = await Promise.all([import("../../services/index.js"), import("../threads/prepare-thread.js")]);
  const threads = new ThreadList({
    prepare: async (request, people) => await prepareThread(request, people, { flags, context }),
    idleMs: idleMinutes === undefined ? undefined : idleMinutes * 60_000,
  });
  return () => openCodexClient(threads);
}
