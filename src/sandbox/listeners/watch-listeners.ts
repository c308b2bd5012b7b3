import { basename } from "node:path";
import { BrigError } from "../../errors.js";
import type { RunnerLink } from "../channel/runner-link.js";
import {
  type BytePath,
  decodeBytePath,
  fromBytePath,
  lstatOrNull,
  quoteBytePath,
} from "../git/byte-paths.js";
import { readBoundSockets, readSocketsOfOtherNetworks } from "./bound-sockets.js";
import { identityKey, type KnownListeners } from "./cover-listeners.js";
import { HostProcesses } from "./host-processes.js";
import { type PlacedSockets, SocketPlaces } from "./placed-sockets.js";
import type { SpecialFile } from "./special-files.js";

const CHECK_EVERY_MS = 250;
/** A check this short ago is not repeated before a command. */
const CHECKED_JUST_NOW_MS = 50;
/** The files of the workspace are looked at in turns, which may take a fiftieth of the time together. */
const SEARCH_EVERY_MS = 1000;
const SEARCH_PAUSES = 50;

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
    const suspects = late.filter(({ path, kind }) => kind === "socket" && sockets.mayBeOf(bornMs(path)));
    if (suspects.length === 0) return undefined;
    const elsewhere = readSocketsOfOtherNetworks(this.#listeners.procDirectory);
    const names = new Set(elsewhere.map(({ name }) => basename(name)));
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
