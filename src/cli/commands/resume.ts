import type { Command } from "commander";
import type { RecordedSession } from "../../agent/index.js";
import { findSession, openEarlierSession } from "../../agent/index.js";
import type { CliContext } from "../../command/index.js";
import { say, sessionHost } from "../../command/index.js";
import { invalidUsage } from "../../errors.js";
import { neutraliseLine } from "../../lib/terminal/terminal.js";
import { startConversation } from "../conversation/start-conversation.js";
import { lastSession, noSession, refuseBoth } from "../sessions/chosen-session.js";
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
    .argument("[session]", "an id or the start of one; with --last, the prompt")
    .argument("[prompt]", "what to do next; - reads it from standard input")
    .option("--last", "continue the most recent session of this directory")
    .option("--all", "with --last: the most recent session of any directory")
    .option("--fork", "continue in a copy and leave the session unchanged")
    .option(
      "--at <step>",
      "continue in a copy that ends with this step, as numbered by brig sessions show, in the workspace as it was then",
      parseStep,
    )
    .action((session: string | undefined, prompt: string | undefined, flags: ResumeFlags) =>
      resume(resumeTarget({ session, prompt }, flags), flags, context),
    );
}

const NO_STATES =
  "brig: only the conversation goes back to that step, since no states of the workspace were kept: " +
  "that needs --workspace overlay\n";

export interface ResumeTarget {
  /** Null for the most recent session. */
  id: string | null;
  prompt: string | undefined;
}

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
  { id, prompt }: ResumeTarget,
  flags: ResumeFlags,
  context: CliContext,
): Promise<void> {
  const isConversation = prompt === undefined && wantsConversation(flags, context);
  if (prompt === undefined && !isConversation && context.stdin.isTTY === true)
    throw invalidUsage("there is no prompt", "give one as an argument, or pipe it in");
  const path = await chosenFile(id, flags, context);
  const { recorded, earlier } = await openEarlierSession(path, sessionHost(context));
  try {
    if (flags.at !== undefined && recorded.workspace === null && flags.workspace === undefined)
      await say(context.stderr, NO_STATES);
    const ownFlags = await withSessionDirectory(recorded, flags, context);
    if (!isConversation) return await runCommand(prompt, ownFlags, { context, earlier });
    await startConversation({ flags: ownFlags, context, earlier });
  } finally {
    earlier.log.close();
  }
}

async function chosenFile(id: string | null, flags: ResumeFlags, context: CliContext): Promise<string> {
  const path =
    id === null
      ? (await lastSession(context, { ...flags, takesAll: true })).path
      : (await findSession(context.environment.brigHome, id)).path;
  if (flags.fork !== true && flags.at === undefined) return path;
  const forked = await fork(path, { atStep: flags.at, context });
  await say(context.stderr, `brig: continuing in a copy, ${forked.threadId}\n`);
  return forked.path;
}

/**
 * A session continues in its own directory, unless `-C` names another one, or the directory is only the claim
 * of a copied file.
 */
async function withSessionDirectory(
  { meta, lastTurn, hasForeignDirectory }: RecordedSession,
  flags: ResumeFlags,
  { cwd, stderr }: CliContext,
): Promise<ResumeFlags> {
  const own = lastTurn?.cwd ?? meta.cwd;
  const isElsewhere = flags.cd !== undefined || flags.workspace === "none" || flags.in !== undefined;
  if (isElsewhere || !own || own === cwd) return flags;
  const directory = neutraliseLine(own);
  if (hasForeignDirectory) {
    await say(
      stderr,
      `brig: working in the current directory; the copied session file names ${directory}, use -C to work there\n`,
    );
    return flags;
  }
  await say(stderr, `brig: working in the session's directory, ${directory}; use -C for another one\n`);
  return { ...flags, cd: own };
}
