import type { ResponseItem } from "../model/items.js";
import type { TokenUsage } from "../model/model-client.js";
import type { RecordedModel, RecordedWorkspace } from "../session/read/session-reader.js";
import { describeDamage, loadSession, type RecordedSession } from "../session/read/session-reader.js";
import type { SentContext } from "../session/setting.js";
import { continueSessionFile, type SessionLog } from "../session/write/session-file.js";

/** A session that was read from its file and can be continued. */
export interface EarlierSession {
  threadId: string;
  items: readonly ResponseItem[];
  /** Null if unknown. */
  instructions: string | null;
  /**
   * The last description of its surroundings that the model got in the items; null if none of it still applies.
   */
  sentContext: SentContext | null;
  /** The session's copy-on-write workspace; null if its workspace was of another kind. */
  workspace: RecordedWorkspace | null;
  /** The model that it used last; null if unknown. */
  model: RecordedModel | null;
  /** The tokens of all requests so far. */
  usage: TokenUsage;
  turns: number;
  /** Whether its set-up was tried in vain, so that nothing has run after it. */
  wasNotSetUp: boolean;
  /** Appends to the session's file. */
  log: SessionLog;
}

/**
 * Reads a session to continue it. The caller closes its log. A damaged file is a warning. Errors: `session.busy`, and
 * `session.invalid` for a file that cannot be read.
 */
export async function openEarlierSession(
  path: string,
  { signal, warn }: { signal: AbortSignal; warn(sentence: string): Promise<void> },
): Promise<{ recorded: RecordedSession; earlier: EarlierSession }> {
  // Opened, and thereby locked, before it is read, so that nobody can add to it in between.
  const log = await continueSessionFile(path, { now: () => new Date() });
  try {
    const recorded = await loadSession(path, { signal });
    const damage = describeDamage(recorded.damage);
    if (damage !== null) await warn(damage);
    return { recorded, earlier: earlierSession(recorded, log) };
  } catch (error) {
    log.close();
    throw error;
  }
}

function earlierSession(recorded: RecordedSession, log: SessionLog): EarlierSession {
  const { threadId, items, meta, model, sentContext, workspace, wasNotSetUp, usage, turns } = recorded;
  return {
    threadId,
    items,
    instructions: meta.base_instructions ?? null,
    sentContext,
    workspace,
    wasNotSetUp,
    model,
    usage,
    turns,
    log,
  };
}
