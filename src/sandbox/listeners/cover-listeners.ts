import { BrigError } from "../../errors.js";
import { step } from "../../lib/steps.js";
import { type BytePath, fromBytePath, lstatOrNull, quoteBytePath, toBytePath } from "../git/byte-paths.js";
import type { CoveredFile, SandboxPlan } from "../plan/plan.js";
import { type BoundSocket, isNamed, readBoundSockets } from "./bound-sockets.js";
import { HostView } from "./host-view.js";
import { isListenedOn } from "./is-listened-on.js";
import { type SpecialFile, SpecialFiles } from "./special-files.js";

/** The listeners that were found before the start. A later one is recognised by not being among them. */
export interface KnownListeners {
  view: HostView;
  files: SpecialFiles;
  /** Device and inode of each socket and FIFO, as `identityKey` makes them. */
  known: ReadonlySet<string>;
  procDirectory: string | undefined;
}

/** Each one is a mount, of which the kernel allows 100 000 and people expect none. */
const MAX_COVERED = 128;

/**
 * Plans to cover each socket of the host that the sandbox would see and that a program has, and each FIFO, since
 * nobody can say without disturbing it whether somebody reads it. A socket that was left behind can never be
 * listened on again, so it stays as it is. Null, with nothing to cover, where no file of the host is seen.
 *
 * Errors: `workspace.invalid` for too many, or one that cannot be covered.
 */
export async function coverListeners(
  plan: SandboxPlan,
  { procDirectory }: { procDirectory?: string | undefined },
): Promise<{ plan: SandboxPlan; listeners: KnownListeners | null }> {
  const view = new HostView(plan);
  const bound = readBoundSockets(procDirectory);
  // If there is no table, this is not Linux: the engine runs in a virtual machine, into which no socket reaches.
  if (bound === null || view.trees.length === 0) return { plan, listeners: null };
  const files = new SpecialFiles(view.trees.map(toBytePath));
  const found = await files.search();
  const covered: CoveredFile[] = [];
  for (const file of found) covered.push(...(await coversOf(file, { view, bound })));
  if (covered.length > MAX_COVERED) throw tooMany(covered);
  step("the workspace is searched for sockets and FIFOs");
  const known = new Set(found.flatMap(({ path }) => identityKey(path) ?? []));
  return { plan: { ...plan, covered }, listeners: { view, files, known, procDirectory } };
}

/** Null for a file that is gone. */
export function identityKey(path: BytePath): string | null {
  const stat = lstatOrNull(path);
  return stat === null ? null : `${stat.dev}:${stat.ino}`;
}

async function coversOf(
  { path, kind }: SpecialFile,
  { view, bound }: { view: HostView; bound: readonly BoundSocket[] },
): Promise<CoveredFile[]> {
  const text = fromBytePath(path);
  const stat = lstatOrNull(path);
  if (stat === null) return [];
  const places = text === null ? null : view.placesOf(text);
  if (places?.length === 0) return [];
  if (text === null || text.includes("\n")) throw cannotCover(path, kind);
  if (kind === "socket" && !isNamed(text, bound) && !(await isListenedOn(text))) return [];
  const identity = { dev: String(stat.dev), ino: String(stat.ino) };
  return (places ?? []).map((place) => ({ path: place.path, identity }));
}

function cannotCover(path: BytePath, kind: SpecialFile["kind"]): BrigError {
  const what = kind === "socket" ? "socket" : "FIFO";
  return new BrigError(
    `the ${what} ${quoteBytePath(path)} has a name with a line break or what is not UTF-8, so it cannot be kept from commands`,
    { code: "workspace.invalid", hint: "remove it, or rename it" },
  );
}

function tooMany(covered: readonly CoveredFile[]): BrigError {
  return new BrigError(
    `there are more than ${MAX_COVERED} FIFOs and sockets that programs of this machine have, such as ${JSON.stringify(covered[0]?.path)}`,
    {
      code: "workspace.invalid",
      hint: "remove them, or use --workspace overlay: commands must not reach what listens there",
    },
  );
}
