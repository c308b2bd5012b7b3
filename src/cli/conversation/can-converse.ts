import type { CliContext } from "../context.js";

/** Whether there is a person at a terminal that can be drawn on. */
export function canConverse({ stdin, stdout, environment }: CliContext): boolean {
  const isTerminal = stdin.isTTY === true && stdout.isTTY === true;
  return isTerminal && !environment.isContinuousIntegration && environment.variables.TERM !== "dumb";
}

/** What `brig PROMPT` adds to `brig run PROMPT`: the prompt begins a conversation, and is not all there is to do. */
export const CONVERSE = "--converse";
