import type { SessionSetting } from "../../../../agent/index.js";

/** The body of an event: its type, and the fields of that type. */
export type CodexMessage = { readonly type: string } & Readonly<Record<string, unknown>>;

/** One event of Codex. */
export interface CodexEvent {
  /** The id of the turn; empty outside of turns. */
  id: string;
  msg: CodexMessage;
}

/** Facts about a session that its events contain. */
export interface ThreadFacts {
  threadId: string;
  model: string;
  provider: string;
  /** Null if the session is not recorded. */
  sessionFile: string | null;
  /** Null if it is unknown. */
  windowTokens(): number | null;
  setting(): SessionSetting;
  now: () => Date;
}
