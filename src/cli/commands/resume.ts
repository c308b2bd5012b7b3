import { realpath } from "node:fs/promises";
import { resolve } from "node:path";
import type { Command } from "commander";
import { BrigError } from "../../errors.js";
import { neutralise, neutraliseLine } from "../../lib/terminal/terminal.js";
import { findLastSession, findSession } from "../../session/read/session-index.js";
import { describeDamage, loadSession, type RecordedSession } from "../../session/read/session-reader.js";
import { continueSessionFile } from "../../session/write/session-file.js";
import type { CliContext } from "../context.js";
import { startConversation } from "../conversation/start-conversation.js";
import { say } from "../render.js";
import type { EarlierSession } from "../setup/agent-setup.js";
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
    .argument("[session]", "an id, or the start of one; with --last this is the prompt")
    .argument("[prompt]", "what to do next; with -, it is read from standard input")
    .option("--last", "the session of this directory that was written to last")
    .option("--all", "with --last: of any directory")
    .option("--fork", "go on in a copy, and leave the session as it is")
    .option("--at <step>", "with --fork: copy up to this step, as brig sessions show numbers them", parseStep)
    .action(async (session: string | undefined, prompt: string | undefined, flags: ResumeFlags) => {
      await resume(askedFor({ session, prompt }, flags), flags, context);
    });
}

export interface Asked {
  /** Null for the last one. */
  id: string | null;
  prompt: string | undefined;
}

/** With `--last` the one argument is the prompt. */
export function askedFor(
  { session, prompt }: { session: string | undefined; prompt: string | undefined },
  { last, at, fork: forks }: ResumeFlags,
): Asked {
  if (at !== undefined && forks !== true) throw usage("--at goes with --fork only", "give --fork too");
  if (last !== true && session === undefined)
    throw usage("which session?", "give its id, or --last; brig sessions lists them");
  if (last !== true) return { id: session ?? null, prompt };
  if (prompt !== undefined) throw usage("with --last there is no id to give", "leave out either");
  return { id: null, prompt: session };
}

export async function resume({ id, prompt }: Asked, flags: ResumeFlags, context: CliContext): Promise<void> {
  const isConversation = prompt === undefined && wantsConversation(flags, context);
  if (prompt === undefined && !isConversation && context.stdin.isTTY === true)
    throw usage("there is nothing to do: no prompt", "give one as an argument, or pipe it in");
  const path = await chosenFile(id, flags, context);
  // Ours before it is read, so that nobody adds to it in between.
  const log = await continueSessionFile(path, { now: () => new Date() });
  try {
    const recorded = await loadSession(path, { signal: context.signal });
    const damage = describeDamage(recorded.damage);
    if (damage !== null) await say(context.stderr, `brig: ${neutralise(damage)}\n`);
    const inPlace = await inItsDirectory(recorded, flags, context);
    const earlier = earlierSession(recorded, log);
    if (!isConversation) return await runCommand(prompt, inPlace, { context, earlier });
    await startConversation({ flags: inPlace, context, earlier });
  } finally {
    log.close();
  }
}

async function chosenFile(id: string | null, flags: ResumeFlags, context: CliContext): Promise<string> {
  const path =
    id === null ? await lastFile(flags, context) : (await findSession(context.environment.brigHome, id)).path;
  if (flags.fork !== true) return path;
  const forked = await fork(path, { atStep: flags.at, context });
  await say(context.stderr, `brig: going on in a copy, ${forked.threadId}\n`);
  return forked.path;
}

async function lastFile({ all, cd = "." }: ResumeFlags, context: CliContext): Promise<string> {
  const { environment } = context;
  const named = resolve(context.cwd, cd);
  const cwd = await realpath(named).catch(() => named);
  const last = await findLastSession(environment.brigHome, { cwd: all === true ? null : cwd });
  if (last !== null) return last.path;
  throw new BrigError(all === true ? "there is no session yet" : `no session has run in ${cwd}`, {
    code: "session.unknown",
    hint: all === true ? "brig run starts one" : "--all looks in all directories; brig sessions lists them",
  });
}

/** A session goes on where it was, unless it is told to go elsewhere, or only somebody else's file says where that is. */
async function inItsDirectory(
  { meta, lastTurn, hasForeignDirectory }: RecordedSession,
  flags: ResumeFlags,
  { cwd, stderr }: CliContext,
): Promise<ResumeFlags> {
  const own = lastTurn?.cwd ?? meta.cwd;
  if (flags.cd !== undefined || flags.workspace === "none" || !own || own === cwd) return flags;
  const directory = neutraliseLine(own);
  if (hasForeignDirectory) {
    await say(
      stderr,
      `brig: working here; the file that was copied names ${directory}, which -C would take\n`,
    );
    return flags;
  }
  await say(stderr, `brig: working in the session's directory, ${directory}; -C names another\n`);
  return { ...flags, cd: own };
}

function earlierSession(recorded: RecordedSession, log: EarlierSession["log"]): EarlierSession {
  const { threadId, items, meta, sentContext, lastTurn, usage, turns } = recorded;
  const provider = meta.model_provider;
  const name = lastTurn?.model;
  return {
    threadId,
    items,
    instructions: meta.base_instructions ?? null,
    sentContext,
    model: provider && name ? { provider, name } : null,
    usage,
    turns,
    log,
  };
}

function usage(message: string, hint: string): BrigError {
  return new BrigError(message, { code: "usage.invalid", hint });
}
