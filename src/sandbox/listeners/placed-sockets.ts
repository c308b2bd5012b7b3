import { realpathSync } from "node:fs";
import { basename, dirname } from "node:path";
import { type BytePath, lstatOrNull } from "../git/byte-paths.js";
import type { BoundSocket } from "./bound-sockets.js";
import type { HostProcesses } from "./host-processes.js";

/** The place of a socket's file, to which its name led when it was first seen. Nulls if the name leads to no socket. */
type Place = { path: BytePath; identity: string } | { path: null; identity: null };

const NOWHERE: Place = { path: null, identity: null };

type Known = Place & {
  /** The last time at which the kernel's table did not have it yet, and the first at which it did. */
  absentAtMs: number;
  seenAtMs: number;
};

export interface PlacedSockets {
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
export class SocketPlaces {
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
