import type { Conversation, PreparedSession } from "../../agent/index.js";
import type { CliContext } from "../../command/index.js";
import type { OnCopied } from "../../sandbox/index.js";
import type { PendingQuestions } from "./question.js";
import type { Block } from "./screen/block.js";
import type { SessionSwitch } from "./session-switch.js";

export interface SlashParts {
  conversation: Conversation;
  setup: PreparedSession;
  /** To go on with another session or another model; null where the program has other ways for that. */
  sessions: SessionSwitch | null;
  context: CliContext | null;
  questions: PendingQuestions;
  show(block: Block): void;
  /** Returns a row for each tool: its name, and whether and why it is on or off. */
  describeTools(): (readonly [string, string])[];
  /** Whether agents that the session has started are at work. */
  hasBusyAgents(): boolean;
  /** Shows what is done, once it takes a while, and how many of the changed files are copied. */
  showWork<T>(what: string, signal: AbortSignal, run: (onCopied: OnCopied) => Promise<T>): Promise<T>;
  /** Called when a new sandbox is starting. */
  onNewSandbox(): void;
}

export interface SlashCall {
  argument: string;
  signal: AbortSignal;
}
