import { rmSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { BrigError } from "../../../errors.js";
import { errnoOf, systemReason } from "../../../lib/errno.js";
import { acquireLock, readCurrentProcess } from "../../../lib/file-lock.js";
import { fullDiskOfBrig } from "../../../lib/files/full-disk.js";
import { makeDirectory } from "../../../lib/files/make-directory.js";
import { listenAlone } from "../../../lib/http/listen.js";
import { ANSWERS_ITSELF } from "../../../lib/http/web-server.js";
import { AnySignal } from "../../../lib/time/any-signal.js";
import { LONGEST_TIMER_MS } from "../../../lib/time/pause.js";
import { MemoryBudget } from "../../serve/http/memory-budget.js";
import { serveHttp } from "../../serve/http/serve-http.js";
import { accountCalls } from "../../serve/sandboxes/account-calls.js";
import { sandboxCalls } from "../../serve/service-calls.js";
import { pointCalls } from "../../serve/workspaces/point-calls.js";
import { lastingDirectory, ownerLock } from "../home/lasting-records.js";
import { type ServiceSocket, serviceSocket, socketProblem } from "../home/service-socket.js";
import { EXEC_PROTOCOL } from "../wire/frames.js";
import { serveAttach, serveExec } from "./exec-connection.js";
import {
  type DiscardLasting,
  LastingSet,
  LOCAL_CLIENT,
  type OpenLasting,
  type ResumeLasting,
} from "./lasting-set.js";
import { LocalCalls } from "./local-calls.js";

export interface OwnerOptions {
  brigHome: string;
  open: OpenLasting;
  resume: ResumeLasting;
  discard: DiscardLasting;
  /** Starts the process that takes over if this one is killed, until what it returns is disposed of. */
  watch: () => Promise<Disposable> | Disposable;
  /** How long the owner stays when there is no sandbox left. */
  lingerMs: number;
  /** Once it is aborted, all sandboxes are ended, and the owner with them. */
  drain: AbortSignal;
  /** Ends everything at once. */
  signal: AbortSignal;
  onListening: () => void;
  onWarning: (error: unknown) => void;
}

/** What the requests of all clients together may take of the owner's memory. */
const BUFFERED_BYTES = 1024 * 1024 * 1024;
/** Node warns of more than ten. */
const MOST_LISTENERS = 20;

/**
 * Keeps the lasting sandboxes of one `$BRIG_HOME` and answers for them until none is left. Resolves to false at once if another process does that
 * already. Errors: `config.invalid` for a place in which somebody else could answer; `store.failed`.
 */
export async function serveOwner(options: OwnerOptions): Promise<boolean> {
  const { brigHome } = options;
  const socket = serviceSocket(brigHome);
  await preparePlace(brigHome, socket);
  const outcome = await acquireLock(ownerLock(brigHome)).catch((cause: unknown) => {
    throw unusable(brigHome, cause);
  });
  if (outcome.kind === "busy") return false;
  using _lock = outcome.lock;
  // What a killed owner has left there. Nobody listens on it, because whoever does has the lock.
  rmSync(socket.path, { force: true });
  await serveUntilUnused(socket, options);
  return true;
}

async function preparePlace(brigHome: string, socket: ServiceSocket): Promise<void> {
  try {
    await makeDirectory(brigHome, { mode: 0o700 });
    await makeDirectory(lastingDirectory(brigHome), { mode: 0o700 });
    await makeDirectory(socket.directory, { mode: 0o700 });
  } catch (cause) {
    throw unusable(brigHome, cause);
  }
  const problem = socketProblem(socket);
  if (problem !== null) throw unsafePlace(problem);
}

function unsafePlace(problem: string): BrigError {
  return new BrigError(`brig's sandboxes cannot be served safely: ${problem}`, {
    code: "config.invalid",
    hint: "set BRIG_HOME to a directory that only you can write to, and remove what is in the place of the socket",
  });
}

function unusable(brigHome: string, cause: unknown): BrigError {
  return new BrigError(`lasting sandboxes cannot be recorded in ${brigHome}: ${systemReason(cause)}`, {
    code: "store.failed",
    errno: errnoOf(cause),
    disk: fullDiskOfBrig(cause, brigHome),
    hint: "make room there, or set BRIG_HOME to a directory that can be written",
    cause,
  });
}

async function serveUntilUnused(socket: ServiceSocket, options: OwnerOptions): Promise<void> {
  const { brigHome, lingerMs, onListening, onWarning, signal } = options;
  const { owner } = await readCurrentProcess();
  const lasting = new LastingSet({ brigHome, owner, onWarning });
  await lasting.takeOver({ resume: options.resume, discard: options.discard, signal });
  using _watched = await options.watch();
  const unused = new AbortController();
  const use = new Use(() => lasting.heldCount, { lingerMs, onUnused: () => unused.abort() });
  using drain = new AnySignal([options.drain, unused.signal]);
  const local = new LocalCalls(lasting, {
    open: options.open,
    end: () => unused.abort(),
    signal: drain.signal,
    onWarning,
  });
  const connections = new Connections(lasting, use);
  signal.addEventListener("abort", () => connections.close(), { once: true });
  try {
    await serveHttp({
      clients: () => [],
      calls: {
        ...sandboxCalls(lasting.sandboxes),
        ...pointCalls(lasting.sandboxes),
        ...accountCalls(lasting.sandboxes),
      },
      memory: new MemoryBudget(BUFFERED_BYTES),
      drain: drain.signal,
      signal,
      settled: async () => {
        await lasting.close();
        connections.close();
      },
      onFault: onWarning,
      onListening,
      // Its clients are its user's own, and may copy files of any size in and out.
      limits: { unreadMs: LONGEST_TIMER_MS, requestMs: 0 },
      door: {
        client: {
          name: LOCAL_CLIENT,
          tokenHash: Buffer.alloc(32),
          rights: { seesAll: true, mayChange: true },
          quota: {},
        },
        async listen(server) {
          server.on("request", (_request, response) => {
            // The service, the owner and the stream of an answer each wait for its end.
            response.setMaxListeners(MOST_LISTENERS);
            use.until(response);
          });
          return await listenAlone(server, socket.path, "store.failed");
        },
        takeUpgrade: (request, duplex, head) => connections.take(request, duplex, head),
        extend(app) {
          app.all("/local/*", ({ env: { incoming, outgoing } }) => {
            void local.answer(incoming, outgoing);
            return ANSWERS_ITSELF;
          });
        },
      },
    });
  } finally {
    use.stop();
    await lasting.close();
    connections.close();
  }
}

/** Notices when nobody has needed the owner for a while. */
class Use {
  readonly #heldCount: () => number;
  readonly #timer: NodeJS.Timeout;
  readonly #lingerMs: number;
  #running = 0;
  #lastMs = performance.now();

  constructor(heldCount: () => number, { lingerMs, onUnused }: { lingerMs: number; onUnused: () => void }) {
    this.#heldCount = heldCount;
    this.#lingerMs = lingerMs;
    this.#timer = setInterval(
      () => {
        if (this.#running > 0 || this.#heldCount() > 0) this.#lastMs = performance.now();
        else if (performance.now() - this.#lastMs >= this.#lingerMs) onUnused();
      },
      Math.min(1000, lingerMs),
    );
  }

  until(work: ServerResponse | Duplex): void {
    this.#running++;
    this.#lastMs = performance.now();
    work.once("close", () => {
      this.#running--;
      this.#lastMs = performance.now();
    });
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}

/** The connections on which commands run. */
class Connections {
  readonly #lasting: LastingSet;
  readonly #use: Use;
  readonly #open = new Set<Duplex>();

  constructor(lasting: LastingSet, use: Use) {
    this.#lasting = lasting;
    this.#use = use;
  }

  take({ url = "", headers }: IncomingMessage, socket: Duplex, head: Buffer): boolean {
    const [, wanted, verb] = /^\/local\/sandboxes\/([^/?]+)\/(exec|attach)$/.exec(url) ?? [];
    if (wanted === undefined || headers.upgrade !== EXEC_PROTOCOL) return false;
    this.#open.add(socket);
    this.#use.until(socket);
    socket.once("close", () => this.#open.delete(socket));
    const serve = verb === "exec" ? serveExec : serveAttach;
    void serve(socket, head, {
      find: () => this.#lasting.get(decoded(wanted)),
      taken: async () => await this.#lasting.taken(decoded(wanted)),
    });
    return true;
  }

  close(): void {
    for (const socket of this.#open) socket.destroy();
  }
}

/** What is not encoded properly is no name either. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
