import { mkdtemp, realpath, rmdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import { text } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import type { Command } from "commander";
import type { Recording, ReplayReport, TurnSettings } from "../../agent/index.js";
import { isSame, readRecording, replaySession, workDirectory } from "../../agent/index.js";
import type { CliContext, SandboxFlags } from "../../command/index.js";
import {
  addSandboxOptions,
  flaggedSettings,
  openSandbox,
  say,
  usesColour,
  write,
  writeJson,
} from "../../command/index.js";
import { BrigError, invalidUsage } from "../../errors.js";
import { neutralise } from "../../lib/terminal/terminal.js";
import type { Sandbox, UnresolvedSettings } from "../../sandbox/index.js";
import { clipped, isSandboxMode, resolveSettings } from "../../sandbox/index.js";
import { plural } from "../conversation/screen/styled-line.js";
import { RunDisplay } from "../display/run-display.js";
import { addSessionArgument, chosenFile, isFile, type SessionChoice } from "../sessions/chosen-session.js";

interface ReplayFlags extends SandboxFlags, SessionChoice {
  inPlace?: boolean;
  keepCopy?: boolean;
  allowFullAccess?: boolean;
  verbose?: boolean;
  json?: boolean;
}

export function defineReplay(command: Command, context: CliContext): void {
  addSessionArgument(addSandboxOptions(command))
    .option("--in-place", "let the calls change the directory itself instead of a copy")
    .option("--keep-copy", "do not remove the copy afterwards")
    .option("--allow-full-access", "repeat calls that had full access or a network with the same access")
    .option("-v, --verbose", "show the calls as they run")
    .option("--json", "print the report as JSON")
    .addHelpText(
      "after",
      "\nThe calls start from the files in the directory that -C names (default: the session's own directory). A session does not\n" +
        "record the files it started from: restore them first, for example with git worktree.\n\n" +
        "Exit status: 0 if everything is the same, 1 if something differs.",
    )
    .action((session: string | undefined, flags: ReplayFlags) => replay(session, flags, context));
}

async function replay(given: string | undefined, flags: ReplayFlags, context: CliContext): Promise<void> {
  const { stdout, signal, cwd } = context;
  if (flags.workspace === "overlay")
    throw invalidUsage(
      "a replay cannot use --workspace overlay: it works on a copy of its own, or with --in-place on the directory itself",
      "leave out --workspace",
    );
  if (flags.git !== undefined)
    throw invalidUsage("a replay cannot use --git: its commits would not be kept", "leave out --git");
  const recording = await readRecording(await chosenFile(given, flags, context), { signal });
  if (recording.segments.length === 0)
    throw new BrigError("the session made no tool calls, so there is nothing to run again", {
      code: "session.invalid",
    });
  // Refuses a mode that may not be used again before anything is copied.
  for (const { turn } of recording.segments) recordedSandbox(turn, flags);
  if (flags.inPlace === true && flags.cd === undefined && given !== undefined && isFile(given))
    throw invalidUsage(
      "--in-place with a session file needs a directory: the one that the file names is not trusted",
      "name the directory with -C",
    );
  const source = resolve(cwd, flags.cd ?? workDirectory(recording));
  const workspace =
    flags.inPlace === true ? await inPlace(source) : await copyOf(source, { recording, flags, context });
  const sandboxParts = { recording, flags, context, directory: workspace.directory };
  const display = new RunDisplay(context.stderr, { usesColour: usesColour(context) });
  try {
    const report = await replaySession({
      recording,
      directory: workspace.directory,
      openSandbox: (turn) => () => createSandbox(recordedSandbox(turn, flags), sandboxParts),
      openFullAccess:
        flags.allowFullAccess === true ? () => () => createSandbox(fullAccess, sandboxParts) : undefined,
      signal,
      onEvent: flags.verbose === true ? (event) => display.show(event) : undefined,
    });
    if (flags.json === true) await writeJson(stdout, asJson(report, workspace));
    else await write(stdout, neutralise(describeReplay(report)));
    if (!isSame(report)) context.setExitStatus(1);
  } finally {
    await workspace.close();
  }
}

function asJson(report: ReplayReport, { source, directory }: ReplayWorkspace): object {
  return { same: isSame(report), ...report, source, directory };
}

interface ReplayParts {
  recording: Recording;
  flags: ReplayFlags;
  context: CliContext;
}

const fullAccess: Partial<SandboxFlags> = {
  sandbox: "danger-full-access",
  policy: undefined,
  network: undefined,
};

/**
 * The sandbox of the recorded turn, unless the flags name another. A session file alone never gets full
 * access or a network: the person has to allow it with a flag.
 */
function recordedSandbox(turn: TurnSettings | null, flags: ReplayFlags): Partial<SandboxFlags> {
  const policy = turn?.sandbox_policy;
  const recorded = policy?.type;
  const mayHaveAll = flags.allowFullAccess === true;
  if (flags.policy !== undefined || flags.sandbox !== undefined || !recorded) return {};
  if (!isSandboxMode(recorded))
    throw invalidUsage(
      `the session ran under the policy ${JSON.stringify(policy.policy ?? recorded)}`,
      "name the policy's file with --policy, or a mode with -s",
    );
  if (recorded === "danger-full-access" && !mayHaveAll)
    throw invalidUsage(
      "the session ran with full access",
      "use --allow-full-access to allow it again, or -s for another mode",
    );
  const hasNetwork = recorded === "workspace-write" && policy.network_access === true;
  if (hasNetwork && flags.network === undefined && !mayHaveAll)
    throw invalidUsage(
      "the session had a network",
      "use --allow-full-access to allow it again, or --network none to run without it",
    );
  return { sandbox: recorded, network: flags.network ?? (hasNetwork ? "full" : undefined) };
}

async function createSandbox(
  special: Partial<SandboxFlags>,
  { recording, flags, context, directory }: ReplayParts & { directory: string },
): Promise<Sandbox> {
  const containerImage = flags.containerImage ?? recording.image ?? undefined;
  const settings = flaggedSettings({ ...flags, ...special, containerImage, cd: directory }, context);
  return await openSandbox(() => resolveSettings(settings), context);
}

interface ReplayWorkspace {
  /** The directory that the user named. */
  source: string;
  /** The directory in which the calls run: `source`, or a copy of it. */
  directory: string;
  close(): Promise<void>;
}

async function inPlace(source: string): Promise<ReplayWorkspace> {
  return { source, directory: await realpath(source).catch(() => source), close: () => Promise.resolve() };
}

/**
 * Makes a copy that the session's calls may change. It is made and removed inside containers, because brig
 * does not open on the host what an agent may have written.
 */
async function copyOf(source: string, { recording, flags, context }: ReplayParts): Promise<ReplayWorkspace> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "brig-replay-")));
  const image = flags.containerImage ?? recording.image ?? undefined;
  const open = (source: Pick<UnresolvedSettings, "workspace"> & Partial<UnresolvedSettings>) =>
    openSandbox(
      () => resolveSettings({ ...source, image, runtime: flags.runtime, environment: context.environment }),
      context,
    );
  let copier: Sandbox | undefined;
  try {
    await using original = await open({ workspace: source, mode: "read-only" });
    // Full access, because the copy includes protected directories such as `.git`. It runs only tar, to copy.
    copier = await open({
      workspace: folder,
      mode: "danger-full-access",
      network: "none",
      leaseSeconds: 3600,
    });
    const directory = join(folder, basename(original.workingDirectory) || "root");
    await copier.files.mkdir(directory);
    await copyTree(original, { to: copier, directory });
    return { source, directory, close: closeCopy(copier, { folder, directory, flags, context }) };
  } catch (error) {
    await copier?.close();
    await rmdir(folder).catch(() => undefined);
    throw error;
  }
}

async function copyTree(from: Sandbox, { to, directory }: { to: Sandbox; directory: string }): Promise<void> {
  const reader = await from.spawn(["tar", "-C", from.workingDirectory, "-cf", "-", "."], { stdin: "closed" });
  const writer = await to.spawn(["tar", "-C", directory, "-xpf", "-"]);
  if (reader.stderr === null || writer.stdin === null || writer.stderr === null)
    throw new TypeError("a process without a terminal has all its streams");
  const complaints = Promise.all([text(reader.stderr), text(writer.stderr)]);
  writer.stdout.resume();
  // If the writer ends early, its exit code and stderr say why.
  await pipeline(reader.stdout, writer.stdin).catch(() => undefined);
  const [read, written] = await Promise.all([reader.exit, writer.exit]);
  if (read.exitCode === 0 && written.exitCode === 0) return;
  const [first] = (await complaints)
    .map((complaint) => complaint.trim())
    .filter((complaint) => complaint !== "");
  const reason = first ?? (read.startFailure ?? written.startFailure)?.message ?? "tar failed";
  throw new BrigError(`the workspace cannot be copied: ${reason}`, {
    code: "workspace.invalid",
    hint: "make a copy yourself and run on it with -C COPY --in-place",
  });
}

function closeCopy(
  copier: Sandbox,
  about: { folder: string; directory: string; flags: ReplayFlags; context: CliContext },
): () => Promise<void> {
  const { folder, directory, flags, context } = about;
  return async () => {
    try {
      if (flags.keepCopy === true) return await say(context.stderr, `brig: the copy is in ${directory}\n`);
      await copier.files.remove(directory, { recursive: true, force: true });
    } finally {
      await copier.close();
      if (flags.keepCopy !== true) await rmdir(folder).catch(() => undefined);
    }
  };
}

const SHOWN_INPUT_CHARS = 160;
const SHOWN_PATHS = 50;

/** A report for a person. It has text from the container, so neutralise it before you print it. */
function describeReplay(report: ReplayReport): string {
  const { calls, differences, skipped, normalised, notes } = report;
  const lines = [
    ...differences.flatMap(differenceLines),
    ...skipped.map(({ step, name, reason }) => `[${step}] ${name}: not run again: ${reason}`),
    ...treeLines(report.tree),
    ...notes,
    normalised.length === 0 ? "everything was compared" : `not compared: ${normalised.join(", ")}`,
    `${isSame(report) ? "the same" : "different"}: ${plural(calls, "call")} run again, ${
      differences.length === 0 ? "no output differs" : `${plural(differences.length, "output")} differ`
    }`,
  ];
  return `${lines.join("\n")}\n`;
}

function differenceLines({
  step,
  name,
  input,
  line,
  recorded,
  replayed,
}: ReplayReport["differences"][number]): string[] {
  return [
    `[${step}] ${name} ${clipped(input, SHOWN_INPUT_CHARS).replace(/\s+/g, " ")}`,
    `    the output differs from line ${line} on:`,
    ...recorded.map((text) => `    - ${text}`),
    ...replayed.map((text) => `    + ${text}`),
  ];
}

function treeLines(tree: ReplayReport["tree"]): string[] {
  if (tree.kind === "same") return ["the final files are the same"];
  if (tree.kind === "not compared") return [`the final files were not compared: ${tree.reason}`];
  const { differences } = tree;
  const hidden = differences.length - SHOWN_PATHS;
  return [
    `${plural(differences.length, "final file")} differ:`,
    ...differences.slice(0, SHOWN_PATHS).map(({ path, kind }) => `    ${kind} ${path}`),
    ...(hidden > 0 ? [`    and ${hidden} more`] : []),
  ];
}
