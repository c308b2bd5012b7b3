import type { RecordedSession } from "../../agent/index.js";
import type { EarlierSession } from "./agent-setup.js";

/** A session that was read from its file, for `prepareAgent` to continue. */
export function earlierSession(recorded: RecordedSession, log: EarlierSession["log"]): EarlierSession {
  const { threadId, items, meta, sentContext, workspace, wasNotSetUp, lastTurn, usage, turns } = recorded;
  const provider = meta.model_provider;
  const name = lastTurn?.model;
  return {
    threadId,
    items,
    instructions: meta.base_instructions ?? null,
    sentContext,
    workspace,
    wasNotSetUp,
    model: provider && name ? { provider, name } : null,
    usage,
    turns,
    log,
  };
}
