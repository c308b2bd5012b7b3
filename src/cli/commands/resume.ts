import type { Command } from "commander";
import { findSession, openEarlierSession } from "../../agent/index.js";
import type { CliContext } from "../../command/index.js";
import { say, sessionHost } from "../../command/index.js";
import { invalidUsage } from "../../errors.js";
import { startConversation } from "../conversation/start-conversation.js";
import { lastSession, noSession, refuseBoth, withSessionDirectory } from "../sessions/chosen-session.js";
import { addRunOptions, type RunFlags, runCommand, wantsConversation } from "./run.js";
import { fork, parseStep } from "./sessions.js";

export interface ResumeFlags extends RunFlags {
  last?: boolean;
  all?: boolean;
  fork?: boolean;
  at?: number;
}

export function defineResume(command: Command, context: CliContext): void {
  addRunOptions(command)
    .argument(
      "[session]",
      "an id or the start of one (default: at a terminal, a list to choose from); with --last, the prompt",
    )
    .argument("[prompt]", "what to do next; - reads it from standard input")
    .option("--last", "continue the most recent session of this directory")
    .option("--all", "with --last and in the list: sessions of all directories")
    .option("--fork", "continue in a copy and leave the session unchanged")
    .option(
      "--at <step>",
      "continue in a copy that ends with this step, as numbered by brig sessions show, in the workspace as it was then",
      parseStep,
    )
    .action(async (session: string | undefined, prompt: string | undefined, flags: ResumeFlags) => {
      const picks = session === undefined && flags.last !== true && wantsConversation(flags, context);
      if (!picks) return await resume(resumeTarget({ session, prompt }, flags), flags, context);
      const { pickSession } = await import("../conversation/choose-session.js");
      const path = await pickSession(context, flags);
      if (path !== null) await resume({ path, prompt: undefined }, flags, context);
    });
}

const NO_STATES =
  "brig: only the conversation goes back to that step, since no states of the workspace were kept: " +
  "that needs --workspace overlay\n";

export type ResumeTarget = {
  prompt: string | undefined;
} & /** Null for the most recent session. */ ({ id: string | null } | { path: string });

/** With `--last`, the only argument is the prompt. */
export function resumeTarget(
  { session, prompt }: { session: string | undefined; prompt: string | undefined },
  { last }: ResumeFlags,
): ResumeTarget {
  if (last !== true && session === undefined) throw noSession();
  if (last !== true) return { id: session ?? null, prompt };
  refuseBoth(prompt !== undefined, { last });
  return { id: null, prompt: session };
}

export async function resume(
  { prompt, ...target }: ResumeTarget,
  flags: ResumeFlags,
  context: CliContext,
): Promise<void> {
  const isConversation = prompt === undefined && wantsConversation(flags, context);
  if (prompt === undefined && !isConversation && context.stdin.isTTY === true)
    throw invalidUsage("there is no prompt", "give one as an argument, or pipe it in");
  const path = await chosenFile(target, flags, context);
  const { recorded, earlier } = await openEarlierSession(path, sessionHost(context));
  try {
    if (flags.at !== undefined && recorded.workspace === null && flags.workspace === undefined)
      await say(context.stderr, NO_STATES);
    const { warn } = sessionHost(context);
    const ownFlags = await withSessionDirectory(recorded, flags, { cwd: context.cwd, warn });
    if (!isConversation) return await runCommand(prompt, ownFlags, { context, earlier });
    await startConversation({ flags: ownFlags, context, earlier });
  } finally {
    earlier.log.close();
  }
}

async function chosenFile(
  target: { id: string | null } | { path: string },
  flags: ResumeFlags,
  context: CliContext,
): Promise<string> {
  const path = "path" in target ? target.path : await pathOf(target.id, flags, context);
  if (flags.fork !== true && flags.at === undefined) return path;
  const forked = await fork(path, { atStep: flags.at, context });
  await say(context.stderr, `brig: continuing in a copy, ${forked.threadId}\n`);
  return forked.path;
}

async function pathOf(id: string | null, flags: ResumeFlags, context: CliContext): Promise<string> {
  return id === null
    ? (await lastSession(context, { ...flags, takesAll: true })).path
    : (await findSession(context.environment.brigHome, id)).path;
}
