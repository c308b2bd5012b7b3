import type { AttemptResult } from "../../../batch/index.js";
import { BrigError, invalidUsage } from "../../../errors.js";
import { AnySignal } from "../../../lib/time/any-signal.js";
import { LONGEST_TIMER_MS } from "../../../lib/time/pause.js";
import type { Sandbox } from "../../../sandbox/index.js";
import type { RemoteSandboxRecord } from "../wire/schemas.js";

/** After this time a removal is tried again that the engine did not confirm. */
const REMOVE_AGAIN_MS = 30_000;

export interface ServedSandboxOptions {
  id: string;
  client: string;
  opened: OpenedPlace;
  /** For all commands. */
  env: Readonly<Record<string, string>>;
  idleMs: number;
  maxLifeMs: number;
  /** Its place among those of the service. */
  seat: Disposable;
  /** Called when it is too old or nobody uses it, and again if it could not be removed then. */
  onExpired: () => void;
}

/** What a call may use. */
export interface InUse {
  sandbox: Sandbox;
  cwd: string;
  env: Readonly<Record<string, string>>;
  /** Aborted with the call, and when the sandbox ends. */
  signal: AbortSignal;
}

/** One sandbox of one client. */
export class ServedSandbox {
  readonly id: string;
  readonly client: string;
  readonly #options: ServedSandboxOptions;
  readonly #createdAt = new Date();
  readonly #ending = new AbortController();
  readonly #lifeTimer: NodeJS.Timeout;
  #idleTimer: NodeJS.Timeout | undefined;
  #callCount = 0;
  #state: RemoteSandboxRecord["state"] = "open";
  #grading: Promise<AttemptResult> | undefined;
  #removing: Promise<void> | undefined;

  constructor(options: ServedSandboxOptions) {
    this.#options = options;
    this.id = options.id;
    this.client = options.client;
    this.#lifeTimer = setTimeout(options.onExpired, Math.min(options.maxLifeMs, LONGEST_TIMER_MS));
    this.#waitIdle();
    options.opened.onEnding?.(() => void this.#leavePlace());
  }

  get record(): RemoteSandboxRecord {
    const { opened, idleMs, maxLifeMs } = this.#options;
    const { image, mode, task, instruction, workingDirectory } = opened;
    return {
      id: this.id,
      state: this.#state,
      image,
      mode,
      task,
      instruction,
      workingDirectory,
      createdAt: this.#createdAt.toISOString(),
      idleMs,
      expiresAt: new Date(this.#createdAt.getTime() + maxLifeMs).toISOString(),
    };
  }

  /** Runs a call in it, during which it is not idle. Errors: `sandbox.gone` once it ends; those of the call. */
  async use<T>(signal: AbortSignal, run: (inUse: InUse) => Promise<T>): Promise<T> {
    const { opened, env } = this.#options;
    if (this.#ending.signal.aborted) throw this.#ending.signal.reason;
    using either = new AnySignal([signal, this.#ending.signal]);
    using _call = this.#call();
    const { sandbox, workingDirectory: cwd } = opened;
    return await run({ sandbox, cwd, env, signal: either.signal });
  }

  /** Ends what runs in it, and grades what is left, once. Error: `usage.invalid` if it is no task's. */
  async grade(): Promise<AttemptResult> {
    const { opened, seat } = this.#options;
    const { grade } = opened;
    if (grade === null) throw invalidUsage("only the sandbox of a task can be graded", "create it with task");
    if (this.#removing !== undefined) throw gone("it is being removed");
    using _call = this.#call();
    this.#grading ??= (async () => {
      // It goes on when the client has gone, and the sandbox is not idle meanwhile.
      using _grading = this.#call();
      this.#state = "grading";
      this.#ending.abort(gone("it is graded"));
      try {
        return await grade();
      } finally {
        this.#state = "graded";
        seat[Symbol.dispose]();
      }
    })();
    return await this.#grading;
  }

  /** Ends its calls and removes it. Error: `engine.failed`; it is tried again later, and this may be called again. */
  async remove(): Promise<void> {
    this.#ending.abort(gone("it was deleted"));
    clearTimeout(this.#lifeTimer);
    clearTimeout(this.#idleTimer);
    this.#removing ??= this.#options.opened.close();
    try {
      await this.#removing;
    } catch (error) {
      this.#removing = undefined;
      this.#removeLater();
      throw error;
    }
    this.#options.seat[Symbol.dispose]();
  }

  /** Its container has ended by itself: until it expires its client is told so, but others may have its place. */
  async #leavePlace(): Promise<void> {
    if (this.#ending.signal.aborted) return;
    this.#state = "ended";
    try {
      await this.#options.opened.close();
    } catch {
      // The container may still be there: its place stays taken until a removal succeeds.
      return;
    }
    this.#options.seat[Symbol.dispose]();
  }

  #call(): Disposable {
    this.#callCount++;
    clearTimeout(this.#idleTimer);
    return {
      [Symbol.dispose]: () => {
        this.#callCount--;
        if (this.#callCount === 0 && this.#removing === undefined) this.#waitIdle();
      },
    };
  }

  #waitIdle(): void {
    const { idleMs, onExpired } = this.#options;
    clearTimeout(this.#idleTimer);
    this.#idleTimer = setTimeout(onExpired, Math.min(idleMs, LONGEST_TIMER_MS));
  }

  /** Its place stays taken, and no client may ever ask again. The service may end meanwhile. */
  #removeLater(): void {
    const { idleMs, onExpired } = this.#options;
    clearTimeout(this.#idleTimer);
    this.#idleTimer = setTimeout(onExpired, Math.min(idleMs, REMOVE_AGAIN_MS)).unref();
  }
}

function gone(why: string): BrigError {
  return new BrigError(`the sandbox has ended: ${why}`, {
    code: "sandbox.gone",
    reason: "closed",
    hint: "create another one",
  });
}

/** What a client works in. */
export interface OpenedPlace {
  sandbox: Sandbox;
  image: string;
  /** Null for the container of a task. */
  mode: string | null;
  task: string | null;
  instruction: string | null;
  workingDirectory: string;
  /** Ends the sandbox and grades what is left; null where there is nothing to grade. */
  grade: (() => Promise<AttemptResult>) | null;
  /** Calls the listener when the sandbox begins to end, by itself as well. Null where its end is not the end of the container. */
  onEnding: ((listener: () => void) => void) | null;
  /** Ends everything. May be called again. */
  close(): Promise<void>;
}
