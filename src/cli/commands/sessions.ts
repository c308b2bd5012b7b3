import { randomBytes } from "node:crypto";
import { rename, rm, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { resolve } from "node:path";
import { type Command, InvalidArgumentError } from "commander";
import type { ForkedSession, SessionStep, SessionSummary } from "../../agent/index.js";
import {
  atifDocument,
  createThreadId,
  findSessionFiles,
  forkSession,
  readSessionLines,
  stepsOf,
  summariseAll,
} from "../../agent/index.js";
import type { CliContext } from "../../command/index.js";
import { say, write, writeJson, writeTable } from "../../command/index.js";
import { BrigError, invalidUsage } from "../../errors.js";
import { jsonText } from "../../lib/json/json-text.js";
import { readHostProcesses } from "../../lib/owner.js";
import { readVersion } from "../../version.js";
import { fittingRows, inFamilies, sessionHeader, sessionRow } from "../display/session-rows.js";
import { shownSession, shownStep } from "../display/session-text.js";
import { defineEgress } from "../egress/egress-command.js";
import { defineProof } from "../proof/proof-command.js";
import {
  addLastOption,
  addSessionArgument,
  chosenFile,
  type FileOfSession,
  type SessionChoice,
} from "../sessions/chosen-session.js";
import { defineSteps } from "../steps/steps-command.js";
import { type DeleteFlags, deleteSessions } from "./delete-sessions.js";

const LISTED = 30;

interface ListFlags {
  all?: boolean;
  limit?: number;
  json?: boolean;
}

export function defineSessions(command: Command, context: CliContext): void {
  withListOptions(command.description("list the sessions, or show, fork, export or delete them")).action(
    async (flags: ListFlags) => {
      await list(flags, context);
    },
  );
  withListOptions(
    command.command("list").alias("ls").description("list the sessions, the most recent first"),
  ).action((flags: ListFlags, { parent }: Command) => list({ ...parent?.opts(), ...flags }, context));
  addSessionArgument(command.command("show"))
    .description("print what was said and done in a session")
    .option("--full", "print instructions, long texts and outputs in full")
    .option("--json", "print the steps, one JSON object per line")
    .action(async (id: string | undefined, flags: ShowFlags) =>
      show(await chosenFile(id, flags, context), flags, context),
    );
  const fileOf: FileOfSession = (id, choice) => chosenFile(id, choice, context);
  defineSteps(command.command("steps"), context, fileOf);
  defineEgress(command.command("egress"), context, fileOf);
  defineProof(command.command("proof"), context, fileOf);
  addSessionArgument(command.command("fork"))
    .description("copy a session, or its beginning, into a new one")
    .option("--at <step>", "the last step to copy, as numbered by show (default: all)", parseStep)
    .action(async (id: string | undefined, flags: SessionChoice & { at?: number }) => {
      const { threadId } = await fork(await fileOf(id, flags), { atStep: flags.at, context });
      await write(context.stdout, `${threadId}\n`);
    });
  addSessionArgument(command.command("export"))
    .description("write a session in another program's format")
    .option("--format <name>", "the format; only atif is supported", "atif")
    .option("-o, --output <file>", "the file to write (default: standard output)")
    .action(async (id: string | undefined, flags: ExportFlags) =>
      exportSession(await fileOf(id, flags), flags, context),
    );
  addLastOption(command.command("delete"))
    .alias("rm")
    .description("delete sessions")
    .argument("[sessions...]", "ids, or the starts of ids; left out with --last")
    .option("-y, --yes", "do not ask for confirmation")
    .action((ids: string[], flags: DeleteFlags) => deleteSessions(ids, flags, context));
}

/** Copies a session into a new one. */
export async function fork(
  file: string,
  { atStep, context }: { atStep?: number | undefined; context: CliContext },
): Promise<ForkedSession> {
  const now = new Date();
  return await forkSession(file, {
    home: context.environment.brigHome,
    threadId: createThreadId(now),
    version: readVersion(),
    now,
    atStep,
    signal: context.signal,
  });
}

export function parseStep(text: string): number {
  return parsePositive(text, "It must be the number of a step, 1 or more.");
}

function parseCount(text: string): number {
  return parsePositive(text, "It must be a number, 1 or more; use --all for all sessions.");
}

function parsePositive(text: string, complaint: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new InvalidArgumentError(complaint);
}

function withListOptions(command: Command): Command {
  return command
    .option("-n, --limit <count>", `how many sessions to list (default: ${LISTED})`, parseCount)
    .option("--all", "list all sessions")
    .option("--json", "print the list as JSON");
}

async function list({ all, limit, json }: ListFlags, context: CliContext): Promise<void> {
  const files = await findSessionFiles(context.environment.brigHome);
  const shown = files.slice(0, all === true ? undefined : (limit ?? LISTED));
  const processes = await readHostProcesses(hostname());
  const summaries = inFamilies(await summariseAll(shown, processes));
  if (json === true) return await writeJson(context.stdout, summaries.map(listedSession));
  if (summaries.length === 0) return await write(context.stdout, "no sessions\n");
  await writeTable(context.stdout, fittingRows([sessionHeader, ...summaries.map(sessionRow)], context));
  const hidden = files.length - shown.length;
  if (hidden > 0) await say(context.stderr, `${hidden} more sessions; list them with --all\n`);
}

function listedSession({ hasLock: _, updatedAt, ...session }: SessionSummary): object {
  return { ...session, updatedAt: updatedAt.toISOString() };
}

interface ShowFlags extends SessionChoice {
  full?: boolean;
  json?: boolean;
}

async function show(file: string, { full = false, json }: ShowFlags, context: CliContext): Promise<void> {
  const { stdout, stderr, signal } = context;
  let unreadable = 0;
  let hasHead = json === true;
  const lines = (async function* () {
    for await (const line of readSessionLines(file, { signal })) {
      if (line.kind === "unreadable") unreadable++;
      if (!hasHead && line.kind === "record" && line.record.type === "session_meta") {
        hasHead = true;
        await say(stdout, shownSession(line.record.meta));
      }
      yield line;
    }
  })();
  let count = 0;
  for await (const step of stepsOf(lines)) {
    count++;
    if (json === true) await write(stdout, `${jsonText(stepAsJson(step))}\n`);
    else await say(stdout, shownStep(step, { full }));
  }
  if (unreadable > 0) await say(stderr, `brig: ${unreadable} lines of ${file} cannot be read\n`);
  if (count === 0 && unreadable > 0)
    throw new BrigError(`${file} is not a session file`, { code: "session.invalid" });
}

function stepAsJson(step: SessionStep): object {
  if (step.source !== "agent") return step;
  const { items: _items, turn: _turn, ...shown } = step;
  return shown;
}

interface ExportFlags extends SessionChoice {
  format: string;
  output?: string;
}

async function exportSession(
  file: string,
  { format, output }: ExportFlags,
  context: CliContext,
): Promise<void> {
  if (format !== "atif")
    throw invalidUsage(`sessions cannot be exported as "${format}"`, "use --format atif");
  const { stdout, signal, cwd } = context;
  const pieces = atifDocument(file, { signal });
  if (output !== undefined && output !== "-") return await writeAtomically(resolve(cwd, output), pieces);
  for await (const piece of pieces) await write(stdout, piece);
}

/** Writes a temporary file and renames it, so that a failure leaves an existing file unchanged. */
async function writeAtomically(file: string, pieces: AsyncIterable<string>): Promise<void> {
  const unfinished = `${file}.${randomBytes(4).toString("hex")}.new`;
  try {
    await writeFile(unfinished, pieces, { flag: "wx" });
    await rename(unfinished, file);
  } catch (cause) {
    await rm(unfinished, { force: true });
    if (cause instanceof BrigError) throw cause;
    const reason = cause instanceof Error ? cause.message : String(cause);
    // The person has not heard of the temporary file, so its name is replaced in the message.
    throw new BrigError(`${file} cannot be written: ${reason.replaceAll(unfinished, file)}`, {
      code: "usage.invalid",
      cause,
    });
  }
}
