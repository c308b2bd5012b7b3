import type { Command } from "commander";
import type { CliContext } from "../../command/index.js";
import { say, write, writeJson, writeTable } from "../../command/index.js";
import { neutralise, neutraliseLine } from "../../lib/terminal/terminal.js";
import type { EgressSettings, SecretMask, WorkspaceChange } from "../../sandbox/index.js";
import { openChanges } from "./chosen-changes.js";
import { addChangesOptions, allKept, type ChangesFlags } from "./kept-changes.js";

interface DiffFlags extends ChangesFlags {
  list?: boolean;
  nameOnly?: boolean;
}

export function defineDiff(command: Command, context: CliContext): void {
  addChangesOptions(command)
    .option("--name-only", "print only the changed paths, and how each has changed")
    .option("--list", "list all changes that were kept, the latest first")
    .addHelpText("after", help)
    .action(async (paths: string[], flags: DiffFlags) => {
      if (flags.list === true) await list(flags, context);
      else await diff(paths, flags, context);
    });
}

const help = `
Compares what a session with --workspace overlay has changed with your files as they are now, or what a sandbox of brig up has
that runs or was stopped: brig diff NAME. The patch is in git's
format: brig diff | git apply does the same as brig apply, but for empty directories, files of more than 16 MiB, and
secrets of [egress.secrets], which are masked in the patch.`;

/** Limits for a patch that a program reads. A person sees files of up to 1 MiB, and only the names of binary files. */
const PIPED = { maxFileBytes: 16 * 1024 * 1024, maxPatchBytes: Number.MAX_SAFE_INTEGER };

async function list({ json }: DiffFlags, { environment, stdout }: CliContext): Promise<void> {
  const all = await allKept(environment.brigHome);
  if (json === true) return await writeJson(stdout, all);
  const rows = all.map(({ id, changedAt, workspace }) => [
    id.slice(0, 8),
    changedAt,
    neutraliseLine(workspace),
  ]);
  await writeTable(stdout, [["ID", "KEPT AT", "WORKSPACE"], ...rows]);
}

async function diff(given: string[], flags: DiffFlags, context: CliContext): Promise<void> {
  const isShort = flags.nameOnly === true;
  const mask = async () => (isShort ? undefined : await configuredMask(context));
  await using changes = await openChanges(given, flags, { context, mask });
  const { about, paths } = changes;
  const { stdout, stderr, signal } = context;
  const options = { paths, patches: !isShort, signal };
  if (flags.json === true) {
    const { changes: all, ...counts } = await changes.diff(options);
    const shown = all.map(({ pathBytes, ...rest }) => ({
      ...rest,
      pathBase64: Buffer.from(pathBytes).toString("base64"),
    }));
    return await writeJson(stdout, { ...about, ...counts, changes: shown });
  }
  const onChange = (change: WorkspaceChange) => show(change, { isShort, context });
  const limits = stdout.isTTY === true ? {} : PIPED;
  const { count, tooLarge, notEntered } = await changes.diff({ ...options, ...limits, onChange });
  if (count === 0) await say(stderr, "brig: nothing differs from your files\n");
  if (tooLarge > 0) await say(stderr, `brig: ${tooLarge} changed files are too large to be shown\n`);
  if (notEntered > 0) await say(stderr, `brig: ${notEntered} directories could not be looked into\n`);
}

/** Hides the secrets of the user's configuration. Prints a warning for each secret that cannot be read, and so not hidden. */
async function configuredMask({ environment, stderr }: CliContext): Promise<SecretMask | undefined> {
  const { loadConfig } = await import("../../agent/index.js");
  const { config } = await loadConfig(environment);
  if (
    config.egress === undefined ||
    Object.keys({ ...config.egress.secrets, ...config.egress.aws_keys }).length === 0
  )
    return undefined;
  const { readableSecrets, SecretMask } = await import("../../sandbox/index.js");
  const { secrets, unreadable } = await readableSecrets(config.egress as EgressSettings, environment);
  for (const { message } of unreadable)
    await say(stderr, `brig: ${neutralise(message)}, so it is not masked\n`);
  return new SecretMask(secrets);
}

/** If standard output is not a terminal, the patch is written unchanged, so that `git apply` can read it. */
async function show(
  { path, change, before, after, patch, isBinary }: WorkspaceChange,
  { isShort, context: { stdout } }: { isShort: boolean; context: CliContext },
): Promise<void> {
  const shown = (text: string) => (stdout.isTTY === true ? neutralise(text) : text);
  if (isShort) return await write(stdout, `${change.padEnd(8)} ${neutraliseLine(path)}\n`);
  const isForProgram = stdout.isTTY !== true;
  if (patch !== null && (isForProgram || !isBinary)) return await write(stdout, shown(patch));
  const type = (after ?? before)?.type ?? "file";
  const what = isBinary && type === "file" ? "binary file" : type;
  await write(stdout, shown(`# ${change} ${what} ${JSON.stringify(path)}\n`));
}
