import type { Approver, ConversationOptions } from "../../../agent/index.js";
import type { AskedUser } from "../../../tools/index.js";
import type { SessionSettings } from "./tool-arguments.js";

/** A session to begin, or a recorded one to continue. */
export type ThreadRequest =
  | { kind: "begin"; settings: SessionSettings }
  /** `settings`: those that it began with, if it began in this process; otherwise null. */
  | { kind: "continue"; threadId: string; settings: SessionSettings | null };

/** Who answers the session's requests for approval and its questions. Undefined: nobody. */
export interface ThreadPeople {
  approver: Approver | undefined;
  user: AskedUser | undefined;
}

/** The options for opening a session's conversation. `Thread` adds the listener for its events. */
export type PreparedThread = ConversationOptions & { threadId: string };

/**
 * Prepares a session, whose sandbox has not started yet. Errors: `session.unknown` and `session.busy` for one
 * to continue, and those of the settings.
 */
export type PrepareThread = (request: ThreadRequest, people: ThreadPeople) => Promise<PreparedThread>;
