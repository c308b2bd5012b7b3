import {
  closeSync,
  constants,
  lstatSync,
  openSync,
  readdirSync,
  readFileSync,
  type Stats,
  statSync,
} from "node:fs";
import { connect } from "node:net";
import { basename, dirname } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { BrigError } from "../../errors.js";
import { errnoOf } from "../../lib/errno.js";
import { step } from "../../lib/steps.js";
import {
  type BytePath,
  fromBytePath,
  listNames,
  lstatOrNull,
  quoteBytePath,
  toBytePath,
} from "../git/byte-paths.js";
import { isAtOrBelow } from "../plan/paths.js";
import type { CoveredFile, SandboxPlan } from "../plan/plan.js";

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

/** What has to be covered in a sandbox, and how later listeners are told from it. */
export interface FoundListeners {
  covered: readonly CoveredFile[];
  /** Null where no file of the host is seen. */
  listeners: KnownListeners | null;
}

/**
 * Finds each socket of the host that the sandbox would see and that a program has, and each FIFO, since nobody can say without
 * disturbing it whether somebody reads it. They are covered. A socket that was left behind can never be listened on again, so
 * it stays as it is.
 *
 * Errors: `workspace.invalid` for too many, or one that cannot be covered.
 */
export async function findListeners(
  plan: SandboxPlan,
  { procDirectory }: { procDirectory?: string | undefined },
): Promise<FoundListeners> {
  const view = new HostView(plan);
  const bound = readBoundSockets(procDirectory);
  // If there is no table, this is not Linux: the engine runs in a virtual machine, into which no socket reaches.
  if (bound === null || view.trees.length === 0) return { covered: [], listeners: null };
  const files = new SpecialFiles(view.trees.map(toBytePath));
  const found = await files.search();
  const covered: CoveredFile[] = [];
  for (const file of found) covered.push(...(await coversOf(file, { view, bound })));
  if (covered.length > MAX_COVERED) throw tooMany(covered);
  step("the workspace is searched for sockets and FIFOs");
  const known = new Set(found.flatMap(({ path }) => identityKey(path) ?? []));
  return { covered, listeners: { view, files, known, procDirectory } };
}

/** A container was started without covering this, because the search took longer than the start. */
export class NotCovered extends Error {}

/**
 * Starts with what the search has found by now, since a search of many files takes as long as the engine takes to start a
 * container. `start` waits for the search before anything runs, and rejects with `NotCovered` where it has found more: then it is
 * called once more.
 */
export async function withCovered<T>(
  searching: Promise<FoundListeners>,
  start: (covered: readonly CoveredFile[]) => Promise<T>,
): Promise<T> {
  const early = await Promise.race([searching, nextTurn(null)]);
  try {
    return await start(early?.covered ?? []);
  } catch (error) {
    if (!(error instanceof NotCovered)) throw error;
    return await start((await searching).covered);
  }
}

/** The listeners of a sandbox that was started before, by what was known then. */
export function knownListenersOf(
  plan: SandboxPlan,
  known: readonly string[],
  { procDirectory }: { procDirectory?: string | undefined },
): KnownListeners {
  const view = new HostView(plan);
  const files = new SpecialFiles(view.trees.map(toBytePath));
  return { view, files, known: new Set(known), procDirectory };
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

/** The most bytes that the kernel's address of a socket has room for, without the zero byte at the end. */
const MAX_ADDRESS_BYTES = 107;

/** The errors of connecting to a socket that no program has any more: its file was left behind. */
const NOBODY = ["ECONNREFUSED", "ENOENT", "ENOTDIR"];

/**
 * Whether a program has this socket, whatever it is called and on whatever network that program is. The kernel
 * goes by the file itself here. A server gets a connection that is closed at once; a socket of datagrams notices nothing.
 */
async function isListenedOn(path: string): Promise<boolean> {
  if (Buffer.byteLength(path) <= MAX_ADDRESS_BYTES) return await answers(path);
  let directory: number;
  try {
    directory = openSync(dirname(path), constants.O_RDONLY | constants.O_DIRECTORY);
  } catch (error) {
    return !NOBODY.includes(errnoOf(error) ?? "");
  }
  try {
    const short = `/proc/self/fd/${directory}/${basename(path)}`;
    return Buffer.byteLength(short) > MAX_ADDRESS_BYTES || (await answers(short));
  } finally {
    closeSync(directory);
  }
}

async function answers(path: string): Promise<boolean> {
  return await new Promise((resolve) => {
    const socket = connect({ path });
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.on("error", (error) => resolve(!NOBODY.includes(errnoOf(error) ?? "")));
  });
}

/** The files of the host that a sandbox sees, and the paths at which it sees them. */
export class HostView {
  readonly #mounts: readonly HostMount[];
  /** Every path that something is mounted at. */
  readonly #paths: readonly string[];

  constructor({ mounts, volumes, tmpfs }: Pick<SandboxPlan, "mounts" | "volumes" | "tmpfs">) {
    this.#mounts = mounts.flatMap(({ path, access, source = { kind: "host", path } }) =>
      source.kind === "host" ? [{ source: source.path, path, access }] : [],
    );
    this.#paths = [...mounts, ...volumes, ...tmpfs].map(({ path }) => path);
  }

  /** The host's directories that are mounted, without those inside of others. */
  get trees(): string[] {
    const sources = [...new Set(this.#mounts.map(({ source }) => source))];
    return sources.filter((one) => !sources.some((outer) => outer !== one && isAtOrBelow(one, outer)));
  }

  /** The paths at which the sandbox sees this file of the host: none if another mount hides it. */
  placesOf(file: string): { path: string; access: "ro" | "rw" }[] {
    const places = this.#mounts.flatMap(({ source, path, access }) => {
      if (!isAtOrBelow(file, source)) return [];
      const inside = `${path}${file.slice(source.length)}`;
      return this.#innermost(inside) === path ? [{ path: inside, access }] : [];
    });
    return [...new Map(places.map((place) => [place.path, place])).values()];
  }

  #innermost(inside: string): string | undefined {
    const above = this.#paths.filter((path) => isAtOrBelow(inside, path));
    return above.toSorted((a, b) => b.length - a.length)[0];
  }
}

interface HostMount {
  source: string;
  path: string;
  access: "ro" | "rw";
}

export interface SpecialFile {
  path: BytePath;
  kind: "socket" | "fifo";
}

/** The state of a directory when it was listed. */
interface Listed {
  ino: number;
  changedMs: number;
  isSettled: boolean;
  special: readonly SpecialFile[];
}

const MAX_BLOCKED_MS = 10;
/** A tree of a million directories takes a few seconds. */
const MAX_SEARCH_MS = 60_000;
/** Some file systems note the time of a change in steps of two seconds: a later change may have the same time. */
const SETTLED_AFTER_MS = 2000;
/** With more directories than this the trees are searched only once, so that they take no more memory. */
const MAX_KEPT_DIRECTORIES = 100_000;

/** The sockets and FIFOs in directories of the host. A second search lists only directories that have changed. */
export class SpecialFiles {
  readonly #directories = new Map<BytePath, Listed | null>();
  #isTooLarge = false;

  constructor(trees: readonly BytePath[]) {
    for (const tree of trees) this.#directories.set(tree, null);
  }

  /** Whether the trees are small enough to be searched again. */
  get canSearchAgain(): boolean {
    return !this.#isTooLarge;
  }

  /** Follows no link. Error: `workspace.invalid` for what cannot be searched although a command could get there. */
  async search(): Promise<SpecialFile[]> {
    const found: SpecialFile[] = [];
    const started = performance.now();
    let sliceEnd = started + MAX_BLOCKED_MS;
    // Directories that are added to the map meanwhile come in their turn.
    for (const [path, known] of this.#directories) {
      const listed = this.#list(path, known);
      if (listed === null) this.#directories.delete(path);
      else {
        this.#directories.set(path, listed);
        found.push(...listed.special);
      }
      const now = performance.now();
      if (now < sliceEnd) continue;
      if (now - started > MAX_SEARCH_MS) throw tooLarge(path);
      await nextTurn();
      sliceEnd = performance.now() + MAX_BLOCKED_MS;
    }
    if (this.#directories.size > MAX_KEPT_DIRECTORIES) {
      this.#isTooLarge = true;
      this.#directories.clear();
    }
    return found;
  }

  /** Null for a directory that is gone, or that no command can get into. */
  #list(path: BytePath, known: Listed | null): Listed | null {
    try {
      const stat = lstatSync(Buffer.from(path, "latin1"), { throwIfNoEntry: false });
      if (stat === undefined || !stat.isDirectory()) return null;
      const { ino, ctimeMs: changedMs } = stat;
      if (known?.isSettled && known.ino === ino && known.changedMs === changedMs) return known;
      const isSettled = Date.now() - changedMs > SETTLED_AFTER_MS;
      return { ino, changedMs, isSettled, special: this.#listEntries(path) };
    } catch (error) {
      refuseUnlessInaccessible(path, error);
      return null;
    }
  }

  #listEntries(path: BytePath): readonly SpecialFile[] {
    const special: SpecialFile[] = [];
    for (const entry of listNames(path)) {
      const inside = path === "/" ? `/${entry.name}` : `${path}/${entry.name}`;
      if (entry.isDirectory() && !this.#directories.has(inside)) this.#directories.set(inside, null);
      else if (entry.isSocket()) special.push({ path: inside, kind: "socket" });
      else if (entry.isFIFO()) special.push({ path: inside, kind: "fifo" });
    }
    return special.length === 0 ? NONE : special;
  }
}

const NONE: readonly SpecialFile[] = [];

/** A command may know the names in a directory that cannot be listed but can be entered. */
function refuseUnlessInaccessible(path: BytePath, error: unknown): void {
  const errno = errnoOf(error);
  if (errno === "ENOENT" || errno === "ENOTDIR") return;
  if (errno === "EACCES" && !canBeEntered(path)) return;
  throw new BrigError(`${quoteBytePath(path)} cannot be searched for sockets and FIFOs: ${errno}`, {
    code: "workspace.invalid",
    hint: "a command could reach a program of this machine there: make the directory readable, or move it out of the workspace",
    cause: error,
  });
}

function canBeEntered(path: BytePath): boolean {
  const ownerMayEnter = 0o100;
  const stat: Stats | undefined = lstatSync(Buffer.from(path, "latin1"), { throwIfNoEntry: false });
  return stat !== undefined && stat.uid === process.getuid?.() && (stat.mode & ownerMayEnter) !== 0;
}

function tooLarge(path: BytePath): BrigError {
  return new BrigError(
    `there are too many directories to be searched for sockets and FIFOs, as in ${quoteBytePath(path)}`,
    { code: "workspace.invalid", hint: "choose a directory further down, or use --workspace overlay" },
  );
}

/** A socket with a name in the file system that takes connections or datagrams, or may begin to. */
export interface BoundSocket {
  /** The kernel's number for it. */
  id: string;
  /** The name as its program wrote it: perhaps relative to where the program was, and perhaps not its name any more. */
  name: BytePath;
}

const DATAGRAM = "0002";
const ACCEPTS_CONNECTIONS = 0x10000;
/** Bound, and not connected: it may still begin to listen. */
const UNCONNECTED = "01";

/** The sockets of this machine's network; null where there is no such table, as on macOS. */
export function readBoundSockets(procDirectory = "/proc"): BoundSocket[] | null {
  try {
    return parseBoundSockets(readFileSync(`${procDirectory}/net/unix`, "latin1"));
  } catch {
    return null;
  }
}

/** The sockets of the other networks of this machine, as containers have them. The table of a network may be read by anybody. */
export function readSocketsOfOtherNetworks(procDirectory = "/proc"): BoundSocket[] {
  const own = networkOf(`${procDirectory}/net/unix`);
  const tables = new Map<number | null, string>();
  for (const process of readdirSync(procDirectory)) {
    if (!/^[0-9]+$/.test(process)) continue;
    const file = `${procDirectory}/${process}/net/unix`;
    const network = networkOf(file);
    if (network === null || network === own || tables.has(network)) continue;
    try {
      tables.set(network, readFileSync(file, "latin1"));
    } catch {
      // The process has ended. Another one of its network has the same table.
    }
  }
  return [...tables.values()].flatMap(parseBoundSockets);
}

/** The kernel has one file for the table of each network, which all processes in it show. Null for a process that has ended. */
function networkOf(file: string): number | null {
  try {
    return statSync(file).ino;
  } catch {
    return null;
  }
}

/** Leaves out abstract names, and connections, which have the name of the socket that accepted them. */
export function parseBoundSockets(table: string): BoundSocket[] {
  const line = /^[0-9a-f]+: [0-9A-F]+ [0-9A-F]+ ([0-9A-F]+) ([0-9A-F]+) ([0-9A-F]+) +([0-9]+) ([^@\n].*)$/gm;
  return [...table.matchAll(line)].flatMap(([, flags = "", type, state, id = "", name = ""]) => {
    const isListening = (Number.parseInt(flags, 16) & ACCEPTS_CONNECTIONS) !== 0;
    return isListening || type === DATAGRAM || state === UNCONNECTED ? [{ id, name }] : [];
  });
}

/** Whether the table names this file: as it is called, or relative to some directory. */
export function isNamed(path: string, sockets: readonly BoundSocket[]): boolean {
  const wanted = toBytePath(path);
  return sockets.some(
    ({ name }) => name === wanted || (!name.startsWith("/") && wanted.endsWith(`/${name}`)),
  );
}
