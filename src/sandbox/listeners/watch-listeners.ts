import { readdirSync, readFileSync, readlinkSync, realpathSync } from "node:fs";
import { basename, dirname } from "node:path";
import { BrigError } from "../../errors.js";
import type { RunnerLink } from "../channel/runner-link.js";
import {
  type BytePath,
  decodeBytePath,
  fromBytePath,
  lstatOrNull,
  quoteBytePath,
} from "../git/byte-paths.js";
import {
  type BoundSocket,
  identityKey,
  type KnownListeners,
  readBoundSockets,
  readSocketsOfOtherNetworks,
  type SpecialFile,
} from "./cover-listeners.js";

const CHECK_EVERY_MS = 250;
/** A check this short ago is not repeated before a command. */
const CHECKED_JUST_NOW_MS = 50;
/** The files of the workspace are looked at in turns, which may take a fiftieth of the time together. */
const SEARCH_EVERY_MS = 1000;
const SEARCH_PAUSES = 50;
/** Files of commands that are remembered. */
const MAX_REMEMBERED = 10_000;

/**
 * Ends the sandbox when a program on the host begins to listen on a socket inside the workspace, since commands could
 * then reach that program. Sockets that were listened on before the start are hidden instead. It looks before each command and four times
 * a second, so a command that waits for this very moment may come first. If two sandboxes share a workspace, the other one's sockets do not count.
 */
export function watchListeners(link: RunnerLink, listeners: KnownListeners): void {
  const watch = new ListenerWatch(link, listeners);
  link.beforeCommand = () => watch.check();
  watch.check();
  const timer = setInterval(() => {
    if (link.isOver) clearInterval(timer);
    else watch.check();
  }, CHECK_EVERY_MS);
  timer.unref();
}

class ListenerWatch {
  readonly #link: RunnerLink;
  readonly #listeners: KnownListeners;
  readonly #processes: HostProcesses;
  readonly #places: SocketPlaces;
  #checkedAt = Number.NEGATIVE_INFINITY;
  #searchAt = performance.now() + SEARCH_EVERY_MS;
  #searching: Promise<void> | undefined;
  /** Files of sockets that commands have listened on: such a file stays when its command has ended. */
  readonly #ofCommands = new Set<string>();

  constructor(link: RunnerLink, listeners: KnownListeners) {
    this.#link = link;
    this.#listeners = listeners;
    this.#processes = new HostProcesses(listeners.procDirectory);
    this.#places = new SocketPlaces(this.#processes);
  }

  /** Looks at the kernel's table, which takes less than a millisecond, and at times begins to look at the files. */
  check(): void {
    const now = performance.now();
    if (this.#link.isOver || now - this.#checkedAt < CHECKED_JUST_NOW_MS) return;
    this.#checkedAt = now;
    const sockets = this.#places.place(readBoundSockets(this.#listeners.procDirectory) ?? []);
    const found = sockets.placed.find(({ path, identity }) => this.#isNew(path, identity));
    if (found !== undefined) this.#end(found.path);
    else if (sockets.hasNewlyLost || now >= this.#searchAt) this.#searching ??= this.#search(sockets);
  }

  async #search(sockets: PlacedSockets): Promise<void> {
    const { files } = this.#listeners;
    if (!files.canSearchAgain) return;
    const started = performance.now();
    try {
      const found = await files.search();
      const late = found.filter(({ path }) => this.#isNew(path, identityKey(path)));
      const reached = this.#lostSocket(late, sockets) ?? this.#openedFifo(late);
      if (reached !== undefined) this.#end(reached);
    } catch {
      // Directories that cannot be searched any more were changed by a command, or are gone.
    } finally {
      const tookMs = performance.now() - started;
      this.#searchAt = performance.now() + Math.max(SEARCH_EVERY_MS, SEARCH_PAUSES * tookMs);
      this.#searching = undefined;
    }
  }

  /**
   * A socket's file that may belong to a program of the host whose socket has another name by now, judged by the time at
   * which the file was made. A command that listened at that time is told by its own name for it, in its own network.
   */
  #lostSocket(late: readonly SpecialFile[], sockets: PlacedSockets): BytePath | undefined {
    const suspects = late
      .filter(({ path, kind }) => kind === "socket" && sockets.mayBeOf(bornMs(path)))
      .map(({ path }) => ({ path, file: `${identityKey(path)} of ${bornMs(path)}` }))
      .filter(({ file }) => !this.#ofCommands.has(file));
    if (suspects.length === 0) return undefined;
    const elsewhere = readSocketsOfOtherNetworks(this.#listeners.procDirectory);
    const names = new Set(elsewhere.map(({ name }) => basename(name)));
    for (const { path, file } of suspects)
      if (names.has(basename(path)) && this.#ofCommands.size < MAX_REMEMBERED) this.#ofCommands.add(file);
    return suspects.find(({ path }) => !names.has(basename(path)))?.path;
  }

  /** A FIFO that commands can have made themselves is the host's only once a program of the host has it open. */
  #openedFifo(late: readonly SpecialFile[]): BytePath | undefined {
    const fifos = late.filter(({ kind }) => kind === "fifo").map(({ path }) => path);
    if (fifos.length === 0) return undefined;
    const [opened] = this.#processes.openedOf(fifos);
    if (opened !== undefined) return opened;
    const foreign = fifos.find((path) => !this.#placesOf(path).some(({ access }) => access === "rw"));
    return foreign !== undefined && this.#processes.waitsForPartner ? foreign : undefined;
  }

  #isNew(path: BytePath, identity: string | null): boolean {
    return identity !== null && !this.#listeners.known.has(identity) && this.#placesOf(path).length > 0;
  }

  #placesOf(path: BytePath): { access: "ro" | "rw" }[] {
    return this.#listeners.view.placesOf(fromBytePath(path) ?? decodeBytePath(path));
  }

  #end(path: BytePath): void {
    this.#link.close(
      new BrigError(
        `the sandbox was ended: a program of this machine began to listen on ${quoteBytePath(path)}, where commands could reach it`,
        {
          code: "sandbox.gone",
          reason: "killed",
          hint: "let that program listen outside of the workspace, or start it before the sandbox, which then hides it; with --workspace overlay it cannot be reached",
        },
      ),
    );
  }
}

function bornMs(path: BytePath): number {
  return Number(lstatOrNull(path)?.birthtimeMs ?? 0);
}

/** The place of a socket's file, to which its name led when it was first seen. Nulls if the name leads to no socket. */
type Place = { path: BytePath; identity: string } | { path: null; identity: null };

const NOWHERE: Place = { path: null, identity: null };

type Known = Place & {
  /** The last time at which the kernel's table did not have it yet, and the first at which it did. */
  absentAtMs: number;
  seenAtMs: number;
};

interface PlacedSockets {
  /** The paths of the files of sockets, with device and inode. */
  placed: readonly { path: BytePath; identity: string }[];
  /** Since the last time, a socket has come whose file is not where its name leads, or one's file was moved. */
  hasNewlyLost: boolean;
  /** A file that was made at this time may belong to a socket of which only the kernel knows the file. */
  mayBeOf(bornMs: number): boolean;
}

/** The most by which the time of a file may differ from our clock: the kernel notes it in ticks. */
const CLOCK_MS = 50;

/** Finds the files of sockets by the names that the kernel's table has for them, and remembers them. */
class SocketPlaces {
  readonly #processes: HostProcesses;
  #known = new Map<string, Known>();
  #lookedAtMs = Number.NEGATIVE_INFINITY;

  constructor(processes: HostProcesses) {
    this.#processes = processes;
  }

  place(sockets: readonly BoundSocket[]): PlacedSockets {
    const now = Date.now();
    const times = { absentAtMs: this.#lookedAtMs, seenAtMs: now };
    const before = this.#known;
    const isFirst = this.#lookedAtMs === Number.NEGATIVE_INFINITY;
    let directories: ReadonlyMap<string, BytePath[]> | undefined;
    const directoriesOf = (id: string) => {
      directories ??= this.#processes.directoriesOfSockets();
      return directories.get(id) ?? [];
    };
    this.#known = new Map(
      sockets.map((socket) => {
        const known = before.get(socket.id);
        const found = known === undefined ? find(socket, directoriesOf) : again(known);
        return [socket.id, { ...(known ?? times), ...found }];
      }),
    );
    this.#lookedAtMs = now;
    const all = [...this.#known.values()];
    const lost = all.filter(({ path }) => path === null);
    return {
      hasNewlyLost:
        !isFirst && [...this.#known].some(([id, { path }]) => path === null && before.get(id)?.path !== null),
      placed: all.flatMap(({ path, identity }) => (path === null ? [] : [{ path, identity }])),
      mayBeOf: (bornMs) =>
        lost.some(
          ({ absentAtMs, seenAtMs }) => absentAtMs - CLOCK_MS <= bornMs && bornMs <= seenAtMs + CLOCK_MS,
        ),
    };
  }
}

/** The place that was found before, unless the file has another place by now. */
function again({ path, identity }: Known): Place {
  const isThere = path !== null && fileAt(path)?.identity === identity;
  return isThere ? { path, identity } : NOWHERE;
}

function find({ id, name }: BoundSocket, directoriesOf: (id: string) => BytePath[]): Place {
  const names = name.startsWith("/") ? [name] : directoriesOf(id).map((directory) => `${directory}/${name}`);
  for (const one of names) {
    const file = fileAt(one);
    if (file !== null) return file;
  }
  return NOWHERE;
}

/** A socket with several names counts as lost, since any of them may be in the workspace. */
function fileAt(name: BytePath): { path: BytePath; identity: string } | null {
  try {
    const stat = lstatOrNull(name);
    if (stat === null || !stat.isSocket() || stat.nlink > 1n) return null;
    const directory = realpathSync(Buffer.from(dirname(name), "latin1"), { encoding: "latin1" });
    const path = `${directory === "/" ? "" : directory}/${basename(name)}`;
    return { path, identity: `${stat.dev}:${stat.ino}` };
  } catch {
    return null;
  }
}

/** The kernel's function in which a process waits that opens a FIFO nobody has opened at its other end. */
const WAITS_FOR_PARTNER = "wait_for_partner";

/**
 * The files that processes of this machine have open, as far as the user may know. Processes in containers are left out: they
 * have other numbers for their processes.
 */
class HostProcesses {
  readonly #proc: string;

  constructor(procDirectory = "/proc") {
    this.#proc = procDirectory;
  }

  /** The working directories of the processes that have each socket: its relative name was looked up there, unless they have moved. */
  directoriesOfSockets(): Map<string, BytePath[]> {
    const directories = new Map<string, BytePath[]>();
    for (const process of this.#own()) {
      const directory = this.#link(`${process}/cwd`);
      if (directory === null) continue;
      for (const opened of this.#opened(process)) {
        const id = /^socket:\[([0-9]+)\]$/.exec(opened)?.[1];
        if (id !== undefined) directories.set(id, [...(directories.get(id) ?? []), directory]);
      }
    }
    return directories;
  }

  /** Returns those of the given paths that a process has open. */
  openedOf(paths: readonly BytePath[]): BytePath[] {
    const opened = new Set(this.#own().flatMap((process) => this.#opened(process)));
    return paths.filter((path) => opened.has(path));
  }

  /** Whether a process waits for the other end of some FIFO. The kernel tells nobody which FIFO it is. */
  get waitsForPartner(): boolean {
    return this.#own().some((process) => this.#read(`${process}/wchan`) === WAITS_FOR_PARTNER);
  }

  #own(): string[] {
    const namespace = this.#link("self/ns/pid");
    const processes = this.#list("").filter((name) => /^[0-9]+$/.test(name));
    return processes.filter((process) => this.#link(`${process}/ns/pid`) === namespace);
  }

  #opened(process: string): BytePath[] {
    return this.#list(`${process}/fd`).flatMap((fd) => this.#link(`${process}/fd/${fd}`) ?? []);
  }

  #list(directory: string): string[] {
    return orNull(() => readdirSync(`${this.#proc}/${directory}`)) ?? [];
  }

  #link(file: string): BytePath | null {
    return orNull(() => readlinkSync(`${this.#proc}/${file}`, { encoding: "latin1" }));
  }

  #read(file: string): string | null {
    return orNull(() => readFileSync(`${this.#proc}/${file}`, "latin1").trim());
  }
}

/** Processes end meanwhile, and others are not the user's. */
function orNull<T>(read: () => T): T | null {
  try {
    return read();
  } catch {
    return null;
  }
}
