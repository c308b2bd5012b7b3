import { invalidUsage } from "../../../errors.js";
import { allEnded } from "../served-client.js";
import type { PrepareThread, ThreadPeople, ThreadRequest } from "./prepare-thread.js";
import { CurrentCaller } from "./questions/current-caller.js";
import { Thread } from "./thread.js";
import type { CallSettings } from "./tool-arguments.js";

export interface ThreadListOptions {
  prepare: PrepareThread;
  /** Sessions that are open at the same time. Default: 32. */
  maxThreads?: number | undefined;
  /** When an idle session gives its sandbox back. Default: 30 minutes. */
  idleMs?: number | undefined;
}

/** The client that opens a session, and whether it can ask its user. */
interface Opener {
  owner: object;
  canAsk: boolean;
}

const MAX_THREADS = 32;
const IDLE_MS = 30 * 60_000;
const MAX_REMEMBERED = 1000;

/** The open sessions of a process. Whoever makes the list closes it. */
export class ThreadList {
  readonly #prepare: PrepareThread;
  readonly #maxThreads: number;
  readonly #idleMs: number;
  readonly #threads = new Map<string, Thread>();
  /** Recorded sessions that are being opened. Another call for one of them waits for the same promise. */
  readonly #continuing = new Map<string, Promise<Thread>>();
  readonly #closing = new Map<string, Promise<void>>();
  /** The settings of closed sessions, which hold again when the session is continued. */
  readonly #settings = new Map<string, CallSettings | null>();
  #opening = 0;

  constructor({ prepare, maxThreads = MAX_THREADS, idleMs = IDLE_MS }: ThreadListOptions) {
    this.#prepare = prepare;
    this.#maxThreads = maxThreads;
    this.#idleMs = idleMs;
  }

  /**
   * Opens a new session and reserves it for one turn. Errors: those of `PrepareThread`; `usage.invalid` if
   * too many sessions are at work.
   */
  async begin(settings: CallSettings, opener: Opener): Promise<Thread> {
    return await this.#open({ kind: "begin", settings }, opener);
  }

  /** Finds an open session, or opens a recorded one, and reserves it for one turn. Errors: as for `begin`. */
  async find(threadId: string, opener: Opener): Promise<Thread> {
    await this.#closing.get(threadId);
    // No await between here and the entry in `#continuing`: a second call would open the session once more.
    const open = this.#threads.get(threadId);
    if (open !== undefined) return reserved(open, opener);
    const continuing = this.#continuing.get(threadId);
    if (continuing !== undefined) return reserved(await continuing, opener);
    const settings = this.#settings.get(threadId) ?? null;
    const opening = this.#open({ kind: "continue", threadId, settings }, opener);
    this.#continuing.set(threadId, opening);
    try {
      return await opening;
    } finally {
      this.#continuing.delete(threadId);
    }
  }

  /** Closes the sessions whose last caller was this client. */
  async closeOf(owner: object): Promise<void> {
    const own = [...this.#threads.values()].filter((thread) => thread.owner === owner);
    await allEnded(own.map((thread) => this.#close(thread)));
  }

  async #open(request: ThreadRequest, { owner, canAsk }: Opener): Promise<Thread> {
    // Counted before anything is waited for: many calls may come at once.
    this.#opening++;
    try {
      await this.#makeRoom();
      let threadId = "";
      const people = new CurrentCaller(() => threadId);
      const present: ThreadPeople = canAsk ? { approver: people.approver, user: people.user } : {};
      const prepared = await this.#prepare(request, present);
      threadId = prepared.threadId;
      const thread = new Thread(prepared, { people, settings: request.settings, idleMs: this.#idleMs });
      this.#threads.set(threadId, thread);
      return reserved(thread, { owner });
    } finally {
      this.#opening--;
    }
  }

  async #makeRoom(): Promise<void> {
    while (this.#threads.size + this.#opening > this.#maxThreads) {
      const [idlest] = [...this.#threads.values()]
        .filter(({ isIdle }) => isIdle)
        .toSorted((a, b) => a.lastUsedAt - b.lastUsedAt);
      if (idlest === undefined)
        throw invalidUsage(
          `${this.#maxThreads} sessions are at work already`,
          "wait for one of them, or cancel it",
        );
      await this.#close(idlest);
    }
  }

  async #close(thread: Thread): Promise<void> {
    this.#threads.delete(thread.id);
    this.#remember(thread);
    const closing = thread.close().finally(() => this.#closing.delete(thread.id));
    this.#closing.set(
      thread.id,
      closing.catch(() => undefined),
    );
    await closing;
  }

  #remember({ id, settings }: Thread): void {
    this.#settings.set(id, settings);
    const [oldest] = this.#settings.keys();
    if (this.#settings.size > MAX_REMEMBERED && oldest !== undefined) this.#settings.delete(oldest);
  }
}

function reserved(thread: Thread, { owner }: Pick<Opener, "owner">): Thread {
  thread.reserve();
  thread.owner = owner;
  return thread;
}
