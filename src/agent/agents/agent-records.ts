import { BrigError, isBrigError } from "../../errors.js";
import { findSession } from "../session/read/session-index.js";
import { loadSession, type RecordedSession } from "../session/read/session-reader.js";
import {
  continueSessionFile,
  noSessionLog,
  openSessionFile,
  type SessionLog,
} from "../session/write/session-file.js";

/** The session files of agents. */
export class AgentRecords {
  readonly #home: string | null;
  readonly #now: () => Date;

  /** Records nothing if there is no `home`. */
  constructor(home: string | undefined, now: () => Date) {
    this.#home = home ?? null;
    this.#now = now;
  }

  async create(threadId: string): Promise<SessionLog> {
    if (this.#home === null) return noSessionLog;
    return await openSessionFile({ home: this.#home, threadId, now: this.#now });
  }

  /**
   * Opens the file of an agent that `parentId` has started; null if there is none. The caller closes the log.
   */
  async reopen(
    threadId: string,
    { parentId, signal }: { parentId: string; signal: AbortSignal | undefined },
  ): Promise<{ recorded: RecordedSession; log: SessionLog } | null> {
    const path = await this.#find(threadId);
    if (path === null) return null;
    // Opening the file locks it, so no other process can add to it while it is read.
    const log = await readable(continueSessionFile(path, { now: this.#now }));
    try {
      const recorded = await readable(loadSession(path, { signal }));
      if (recorded.threadId === threadId && recorded.meta.parent_thread_id === parentId)
        return { recorded, log };
      log.close();
      return null;
    } catch (error) {
      log.close();
      throw error;
    }
  }

  async #find(threadId: string): Promise<string | null> {
    if (this.#home === null) return null;
    try {
      const { id, path } = await findSession(this.#home, threadId);
      return id === threadId ? path : null;
    } catch (error) {
      if (isBrigError(error, "session.unknown")) return null;
      throw error;
    }
  }
}

/** Gives errors of session files the code `tool.failed`, so that the model can read what is wrong. */
async function readable<T>(opening: Promise<T>): Promise<T> {
  try {
    return await opening;
  } catch (error) {
    if (!isBrigError(error) || !error.code.startsWith("session.")) throw error;
    throw new BrigError(`the agent cannot be resumed: ${error.message}`, {
      code: "tool.failed",
      hint: error.hint,
      cause: error,
    });
  }
}
