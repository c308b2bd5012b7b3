import type { Conversation, PreparedSession } from "../../agent/index.js";
import type { PendingQuestions } from "./question.js";
import type { Block } from "./screen/block.js";

export interface SlashParts {
  conversation: Conversation;
  setup: PreparedSession;
  questions: PendingQuestions;
  show(block: Block): void;
  /** Returns a row for each tool: its name, and whether and why it is on or off. */
  describeTools(): (readonly [string, string])[];
  /** Whether agents that the session has started are at work. */
  hasBusyAgents(): boolean;
  /** Called when a new sandbox is starting. */
  onNewSandbox(): void;
}

export interface SlashCall {
  argument: string;
  signal: AbortSignal;
}
