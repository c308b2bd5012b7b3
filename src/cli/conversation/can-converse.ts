import type { CliContext } from "../../command/index.js";

/** Whether there is a person at a terminal that brig can draw on. */
export function canConverse(context: CliContext): boolean {
  return context.stdin.isTTY === true && isScreen(context);
}

/** Whether a person sees what is written to stdout on a terminal that brig can draw on. */
export function isScreen({ stdout, environment }: CliContext): boolean {
  const { isContinuousIntegration, variables } = environment;
  return stdout.isTTY === true && !isContinuousIntegration && variables.TERM !== "dumb";
}

/** The hidden flag that makes `brig PROMPT` a conversation, which `brig run PROMPT` is not. */
export const CONVERSE = "--converse";
