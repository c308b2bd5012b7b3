import type { Command } from "commander";
import type { CliContext } from "../../command/index.js";
import { ChangesWork, describeError, fitted, say } from "../../command/index.js";
import { BrigError, invalidUsage, isBrigError } from "../../errors.js";
import type { ApplyOptions, ApplyResult, Sandbox, SecretMask } from "../../sandbox/index.js";
import { describeSnapshot, listSnapshots, readRescues } from "../../sandbox/index.js";

/** The options that `brig diff` and `brig apply` share. */
export interface ChangesFlags {
  id?: string;
  /** Chooses the latest changes of the directory, which is also the default without an id. */
  last?: boolean;
  /** A sandbox of `brig up` instead of kept changes. */
  in?: string;
  json?: boolean;
}

export interface KeptState {
  id: string;
  workspace: string;
  createdAt: string;
  /** The time of its last restore point, or of its creation if it has none. */
  changedAt: string;
}

export function addChangesOptions(command: Command): Command {
  return command
    .argument(
      "[paths...]",
      "a sandbox of brig up, if the first is the name of one; only these paths of the workspace, and what is below them",
    )
    .option("--in <sandbox>", "a sandbox of brig up, by its name or id")
    .option(
      "--id <id>",
      "the id, or its beginning, of kept changes or of a session (default: the latest of this directory)",
    )
    .option("--last", "the latest kept changes of this directory, as without --id")
    .option("--json", "print JSON");
}

/**
 * The kept changes of all sessions, the latest first, including those that only a rescue knows. Unreadable ones are left
 * out.
 */
export async function allKept(brigHome: string): Promise<KeptState[]> {
  const all = await Promise.all(
    (await listSnapshots(brigHome)).map(async (id) => await describeSnapshot(brigHome, id).catch(() => null)),
  );
  const rescued = (await readRescues(brigHome)).flatMap(({ state }) => state ?? []);
  const newer = new Set(rescued.map(({ id }) => id));
  const known = all.flatMap((one) => (one === null || newer.has(one.id) ? [] : [one]));
  return [...known, ...rescued]
    .map(({ owner, ...kept }) => kept)
    .sort((one, other) => (one.changedAt < other.changedAt ? 1 : -1));
}

interface OpenedState {
  sandbox: Sandbox;
  kept: KeptState;
  /** Applies changes to the host. They are no longer kept changes after that. */
  apply(options: ApplyOptions): Promise<ApplyResult>;
}

/**
 * Opens a sandbox whose workspace has the kept state, and resolves the given paths. Errors:
 * `snapshot.unknown`, `usage.invalid` if several ids begin with the given text, those of a start.
 */
export async function openKept(
  { id, last }: ChangesFlags,
  context: CliContext,
  { mask }: { mask?: SecretMask | undefined } = {},
): Promise<OpenedState> {
  const { environment, signal, stderr, cwd } = context;
  const { brigHome } = environment;
  if (id !== undefined && last === true)
    throw invalidUsage("--last cannot be combined with --id", "leave out one of them");
  const kept = await choose(await allKept(brigHome), { id, cwd, brigHome });
  await requireLast(kept, { brigHome, isAsked: id !== undefined, stderr });
  const { applyKeptChanges, startFromSnapshot, resolveSettings, connectEngine } = await import(
    "../../sandbox/index.js"
  );
  const engine = connectEngine({ env: environment });
  // A failure is reported where the engine is needed, when the snapshot is read.
  engine.catch(() => undefined);
  using work = stderr.isTTY === true ? new ChangesWork(context, "opening the changes") : null;
  const sandbox = await startFromSnapshot(
    async (workspace) => {
      const settings = await resolveSettings({ workspace, workspaceKind: "overlay", environment });
      return { ...settings, inspection: mask && { rules: [], secrets: [], authorities: [], mask } };
    },
    {
      id: kept.id,
      brigHome,
      start: {
        engine,
        signal,
        onCopied: work?.onCopied,
        onWarning: (warning) => {
          stderr.write(fitted(stderr, describeError(warning, { showsCauses: false })));
        },
      },
    },
  );
  return {
    sandbox,
    kept,
    apply: async (options) => await applyKeptChanges(sandbox, kept.id, options),
  };
}

/**
 * Throws if this is not the last state of its session: the last one could not be stored in $BRIG_HOME, and this one, which could,
 * is older. If the last one does not exist any more, the older one is accepted where its id was given.
 */
async function requireLast(
  { id }: KeptState,
  { brigHome, isAsked, stderr }: { brigHome: string; isAsked: boolean } & Pick<CliContext, "stderr">,
): Promise<void> {
  const rescue = (await readRescues(brigHome)).find((one) => one.id === id);
  if (rescue === undefined) return;
  const short = id.slice(0, 8);
  if (rescue.state !== null)
    throw new BrigError(
      `the last state of these changes could not be stored here, and is in ${rescue.home}`,
      {
        code: "snapshot.unknown",
        hint: `BRIG_HOME=${rescue.home} brig diff --id ${short} shows it, BRIG_HOME=${rescue.home} brig apply --id ${short} brings it to your files`,
      },
    );
  const gone =
    "the last state of these changes could not be stored, and is gone; what is kept is an earlier one";
  if (isAsked) return await say(stderr, `brig: ${gone}\n`);
  throw new BrigError(gone, {
    code: "snapshot.unknown",
    hint: `brig diff --id ${short} shows the earlier one, brig apply --id ${short} brings it to your files`,
  });
}

async function choose(
  all: readonly KeptState[],
  { id, cwd, brigHome }: { id: string | undefined; cwd: string; brigHome: string },
): Promise<KeptState> {
  if (id === undefined) {
    const latest = all.find(({ workspace }) => cwd === workspace || cwd.startsWith(`${workspace}/`));
    if (latest !== undefined) return latest;
    throw new BrigError(`no changes of ${cwd} were kept`, {
      code: "snapshot.unknown",
      hint: "run brig with --workspace overlay here; brig diff --list shows what was kept elsewhere",
    });
  }
  const found = all.filter((one) => one.id.startsWith(id));
  const [only] = found.length === 0 ? await keptOfSession(all, { id, brigHome }) : found;
  if (only !== undefined && (found.length <= 1 || only.id === id)) return only;
  throw new BrigError(
    only === undefined
      ? `no changes ${JSON.stringify(id)} were kept`
      : `${JSON.stringify(id)} is the beginning of several ids`,
    {
      code: only === undefined ? "snapshot.unknown" : "usage.invalid",
      hint: "brig diff --list shows all that were kept",
    },
  );
}

/** The last state that a session has left, if the given text is the beginning of the session's id. */
async function keptOfSession(
  all: readonly KeptState[],
  { id, brigHome }: { id: string; brigHome: string },
): Promise<KeptState[]> {
  const { findSession, loadSession } = await import("../../agent/index.js");
  const file = await findSession(brigHome, id).catch((error: unknown) => {
    if (isBrigError(error, "session.unknown")) return null;
    throw error;
  });
  const states = file === null ? [] : ((await loadSession(file.path)).workspace?.states ?? []);
  return states.flatMap(({ snapshot }) => all.filter((kept) => kept.id === snapshot));
}
