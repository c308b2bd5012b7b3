import { mkdtemp, realpath, rmdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import { text } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import type { Command } from "commander";
import { type Recording, readRecording } from "../../agent/replay/replay-recording.js";
import {
  isSame,
  type ReplayReport,
  replaySession,
  workDirectory,
} from "../../agent/replay/replay-session.js";
import { BrigError } from "../../errors.js";
import { neutralise } from "../../lib/terminal/terminal.js";
import { isSandboxMode } from "../../policy/modes.js";
import { Sandbox } from "../../sandbox/sandbox.js";
import { resolveSettings } from "../../sandbox/settings/resolve-settings.js";
import type { TurnSettings } from "../../session/read/session-lines.js";
import type { CliContext } from "../context.js";
import { describeReplay } from "../display/replay-text.js";
import { RunDisplay } from "../display/run-display.js";
import { say, write, writeJson } from "../render.js";
import { openSandbox } from "../setup/open-sandbox.js";
import { addSandboxOptions, flaggedSettings, type SandboxFlags } from "../setup/sandbox-flags.js";
import { isFile, sessionFile } from "./sessions.js";

interface ReplayFlags extends SandboxFlags {
  inPlace?: boolean;
  keepCopy?: boolean;
  allowFullAccess?: boolean;
  verbose?: boolean;
  json?: boolean;
}

export function defineReplay(command: Command, context: CliContext): void {
  addSandboxOptions(command)
    .argument("<session>", "an id, the start of one, or a file")
    .option("--in-place", "work in the directory itself instead of a copy of it: the calls change it")
    .option("--keep-copy", "leave the copy where it is afterwards")
    .option("--allow-full-access", "let what had full access, or a network, have it again")
    .option("-v, --verbose", "show the calls as they run")
    .option("--json", "print the report as JSON")
    .addHelpText(
      "after",
      "\nThe calls start from what -C names (default: the session's own directory as it is now). A session does not keep the tree it\n" +
        "started from: bring it back first, for example with git worktree. Exit status 1 says that something came out different.",
    )
    .action(async (session: string, flags: ReplayFlags) => {
      await replay(session, flags, context);
    });
}

async function replay(given: string, flags: ReplayFlags, context: CliContext): Promise<void> {
  const { stdout, signal, cwd } = context;
  const recording = await readRecording(await sessionFile(given, context), { signal });
  if (recording.segments.length === 0)
    throw new BrigError("there is nothing to run again: the session made no tool calls", {
      code: "session.invalid",
    });
  for (const { turn } of recording.segments) asRecorded(turn, flags);
  if (flags.inPlace === true && flags.cd === undefined && isFile(given))
    throw refused("a file does not say which directory its calls may change", "name it with -C");
  const source = resolve(cwd, flags.cd ?? workDirectory(recording));
  const place =
    flags.inPlace === true ? await inPlace(source) : await copyOf(source, { recording, flags, context });
  const surroundings = { recording, flags, context, directory: place.directory };
  try {
    const report = await replaySession({
      recording,
      directory: place.directory,
      openSandbox: (turn) => () => createSandbox(asRecorded(turn, flags), surroundings),
      openFullAccess:
        flags.allowFullAccess === true ? () => () => createSandbox(fullAccess, surroundings) : undefined,
      signal,
      onEvent: flags.verbose === true ? display(context) : undefined,
    });
    if (flags.json === true) await writeJson(stdout, asJson(report, place));
    else await write(stdout, neutralise(describeReplay(report)));
    if (!isSame(report)) context.setExitStatus(1);
  } finally {
    await place.leave();
  }
}

function asJson(report: ReplayReport, { source, directory }: Place): object {
  return { same: isSame(report), ...report, source, directory };
}

function display({ stderr, environment }: CliContext) {
  const usesColour =
    stderr.isTTY === true && !environment.forbidsColor && !environment.isContinuousIntegration;
  const shown = new RunDisplay(stderr, { usesColour });
  return (event: Parameters<RunDisplay["show"]>[0]) => {
    shown.show(event);
  };
}

interface Surroundings {
  recording: Recording;
  flags: ReplayFlags;
  context: CliContext;
}

const fullAccess: Partial<SandboxFlags> = {
  sandbox: "danger-full-access",
  policy: undefined,
  network: undefined,
};

/** As the turn had it, where the flags say nothing else. That a file says so is no reason to give more than a closed sandbox. */
function asRecorded(turn: TurnSettings | null, flags: ReplayFlags): Partial<SandboxFlags> {
  const policy = turn?.sandbox_policy;
  const recorded = policy?.type;
  const mayHaveAll = flags.allowFullAccess === true;
  if (flags.policy !== undefined || flags.sandbox !== undefined || !recorded) return {};
  if (!isSandboxMode(recorded))
    throw refused(
      `the session ran under the policy ${JSON.stringify(policy.policy ?? recorded)}`,
      "name its file with --policy, or a mode with -s",
    );
  if (recorded === "danger-full-access" && !mayHaveAll)
    throw refused("the session ran with full access", "--allow-full-access gives it again, -s another mode");
  const hasNetwork = recorded === "workspace-write" && policy.network_access === true;
  if (hasNetwork && flags.network === undefined && !mayHaveAll)
    throw refused("the session had a network", "--allow-full-access gives it again, --network none does not");
  return { sandbox: recorded, network: flags.network ?? (hasNetwork ? "full" : undefined) };
}

function refused(message: string, hint: string): BrigError {
  return new BrigError(message, { code: "usage.invalid", hint });
}

async function createSandbox(
  special: Partial<SandboxFlags>,
  { recording, flags, context, directory }: Surroundings & { directory: string },
): Promise<Sandbox> {
  const containerImage = flags.containerImage ?? recording.image ?? undefined;
  const settings = flaggedSettings({ ...flags, ...special, containerImage, cd: directory }, context);
  return await openSandbox(() => resolveSettings(settings), context);
}

/** Where the calls run. */
interface Place {
  /** What the user named. */
  source: string;
  directory: string;
  leave(): Promise<void>;
}

async function inPlace(source: string): Promise<Place> {
  return { source, directory: await realpath(source).catch(() => source), leave: () => Promise.resolve() };
}

/**
 * A copy that the session's calls may change. It is made and removed from within containers: what an agent has touched is not opened on
 * this machine itself.
 */
async function copyOf(source: string, { recording, flags, context }: Surroundings): Promise<Place> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "brig-replay-")));
  const image = flags.containerImage ?? recording.image ?? undefined;
  const common = { image, runtime: flags.runtime, environment: context.environment, signal: context.signal };
  let copier: Sandbox | undefined;
  try {
    await using original = await Sandbox.create({ ...common, workspace: source, mode: "read-only" });
    // It may write everything, `.git` too, and runs nothing but these commands.
    copier = await Sandbox.create({
      ...common,
      workspace: folder,
      mode: "danger-full-access",
      network: "none",
      leaseSeconds: 3600,
    });
    const directory = join(folder, basename(original.workingDirectory) || "root");
    await copier.files.mkdir(directory);
    await copyTree(original, { to: copier, directory });
    return { source, directory, leave: leaving(copier, { folder, directory, flags, context }) };
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
  // A writer that ends early has said why.
  await pipeline(reader.stdout, writer.stdin).catch(() => undefined);
  const [read, written] = await Promise.all([reader.exit, writer.exit]);
  if (read.exitCode === 0 && written.exitCode === 0) return;
  const [first] = (await complaints)
    .map((complaint) => complaint.trim())
    .filter((complaint) => complaint !== "");
  const reason = first ?? (read.startFailure ?? written.startFailure)?.message ?? "tar failed";
  throw new BrigError(`the workspace cannot be copied: ${reason}`, {
    code: "workspace.invalid",
    hint: "copy it yourself, and give the copy with -C and --in-place",
  });
}

function leaving(
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
