import type { CliContext } from "../../command/index.js";

/** Whether there is a person at a terminal that brig can draw on. */
export function canConverse({ stdin, stdout, environment }: CliContext): boolean {
  const isTerminal = stdin.isTTY === true && stdout.isTTY === true;
  return isTerminal && !environment.isContinuousIntegration && environment.variables.TERM !== "dumb";
}

/** The hidden flag that makes `brig PROMPT` a conversation, which `brig run PROMPT` is not. */
export const CONVERSE = "--converse";
