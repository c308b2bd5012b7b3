import { realpath } from "node:fs/promises";
import { resolve } from "node:path";
import type { Command } from "commander";
import type { RecordedSession, SessionFileEntry } from "../../agent/index.js";
import { findLastSession, findSession } from "../../agent/index.js";
import type { CliContext } from "../../command/index.js";
import { BrigError, invalidUsage } from "../../errors.js";
import type { SessionFlags } from "../setup/session-flags.js";

/** An option that replaces the id of a session. */
export interface SessionChoice {
  /** The most recent session of this directory. */
  last?: boolean;
}

/** Finds the file of the session that was chosen. Errors: those of `findSession`; `usage.invalid` if none is given, or both are. */
export type FileOfSession = (given: string | undefined, choice: SessionChoice) => Promise<string>;

/** Adds the argument of a command that works on one session, and the option that replaces it. */
export function addSessionArgument(command: Command): Command {
  return addLastOption(
    command.argument("[session]", "an id, the start of one, or a file; left out with --last"),
  );
}

export function addLastOption(command: Command): Command {
  return command.option("--last", "the most recent session of this directory");
}

/** See `FileOfSession`. */
export async function chosenFile(
  given: string | undefined,
  choice: SessionChoice,
  context: CliContext,
): Promise<string> {
  refuseBoth(given !== undefined, choice);
  if (choice.last === true) return (await lastSession(context)).path;
  if (given === undefined) throw noSession();
  return await sessionFile(given, context);
}

export function refuseBoth(isGiven: boolean, { last }: SessionChoice): void {
  if (isGiven && last === true)
    throw invalidUsage("--last cannot be combined with a session's id", "leave out one of them");
}

export function noSession(): BrigError {
  return invalidUsage("no session given", "give the id of one, or --last; list them with: brig sessions");
}

/** Finds the file of a session by the session's id, the start of the id, or the path of the file. */
async function sessionFile(given: string, { environment, cwd }: CliContext): Promise<string> {
  return isFile(given) ? resolve(cwd, given) : (await findSession(environment.brigHome, given)).path;
}

/** Whether the argument is the path of a file rather than an id. Do not trust the contents of such a file. */
export function isFile(given: string): boolean {
  return given.includes("/") || given.endsWith(".jsonl");
}

interface LastOptions {
  /** The directory to use instead of the current one. */
  cd?: string | undefined;
  all?: boolean | undefined;
  /** Whether the command has an option for `all`. */
  takesAll?: boolean;
}

/** The session of a directory, or with `all` of any, that was used last. Error: `session.unknown`. */
export async function lastSession(
  { environment, cwd }: CliContext,
  { cd = ".", all = false, takesAll = false }: LastOptions = {},
): Promise<SessionFileEntry> {
  const named = resolve(cwd, cd);
  const directory = await realpath(named).catch(() => named);
  const last = await findLastSession(environment.brigHome, { cwd: all ? null : directory });
  if (last !== null) return last;
  throw new BrigError(all ? "there is no session yet" : `no session has run in ${directory}`, {
    code: "session.unknown",
    hint: all
      ? "start one with brig run"
      : takesAll
        ? "use --all for sessions of any directory, or list them with: brig sessions"
        : "list the sessions of all directories with: brig sessions",
  });
}

/**
 * A session continues in its own directory, unless `-C` names another one, or the directory is only the claim
 * of a copied file.
 */
export async function withSessionDirectory<Flags extends DirectoryFlags>(
  { meta, lastTurn, hasForeignDirectory }: RecordedSession,
  flags: Flags,
  { cwd, warn }: { cwd: string; warn(sentence: string): Promise<void> },
): Promise<Flags> {
  const own = lastTurn?.cwd ?? meta.cwd;
  const isElsewhere = flags.cd !== undefined || flags.workspace === "none" || flags.in !== undefined;
  if (isElsewhere || !own || own === cwd) return flags;
  if (hasForeignDirectory) {
    await warn(
      `working in the current directory; the copied session file names ${own}, use -C to work there`,
    );
    return flags;
  }
  await warn(`working in the session's directory, ${own}; use -C for another one`);
  return { ...flags, cd: own };
}

type DirectoryFlags = Pick<SessionFlags, "cd" | "workspace" | "in">;
