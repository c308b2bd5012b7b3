import { rm } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { basename } from "node:path";
import { BrigError, isBrigError } from "../errors.js";
import { type OptionNames, refuseUnknownOptions } from "../known-options.js";
import { beforeAbort } from "../lib/time/before-abort.js";
import { pause } from "../lib/time/pause.js";
import { proveLink } from "./connect-and-prove.js";
import { createSandbox } from "./create-sandbox.js";
import { closeFirst, type OpenedSandbox } from "./open-sandbox.js";
import { runnerPath } from "./plan/create-body.js";
import { tellIfForgotten } from "./process/forgotten.js";
import { type Sandbox, sandboxFrom } from "./sandbox.js";
import type { SandboxOptions } from "./sandbox-options.js";
import { type Warn, warner } from "./warnings.js";

const DEFAULT_SIZE = 4;
const MAX_SIZE = 1000;
/**
 * A caller who has just got a sandbox makes its first calls in this time, and the start of another one would slow them down.
 * The pool waits no longer once that sandbox is closed.
 */
const REFILL_AFTER_MS = 50;

const poolOptionNames: OptionNames<PoolOptions> = {
  mode: true,
  policyFile: true,
  image: true,
  runtime: true,
  limits: true,
  network: true,
  leaseSeconds: true,
  env: true,
  engine: true,
  docker: true,
  maxStartsAtOnce: true,
  onWarning: true,
  size: true,
  workspaceKind: true,
};
const acquireOptionNames: OptionNames<AcquireOptions> = { signal: true };

/**
 * Starts `size` sandboxes without a workspace and keeps as many ready. Each is used once: the pool hands it over
 * after it has read its policy back from the kernel again, and starts another one. Error: `usage.invalid`; what
 * is wrong with a start is reported where it is waited for, and else by `onWarning`.
 */
export function createPool(options: PoolOptions = {}): SandboxPool {
  return startPool(options);
}

/** The same, with sandboxes with which another process can go on, each from a directory of its own. Not exported by the package. */
export function startPool(options: PoolOptions, lasting?: NewDirectory): SandboxPool {
  refuseUnknownOptions(options, poolOptionNames, { of: "createPool" });
  const { size = DEFAULT_SIZE, workspaceKind = "none", ...others } = options;
  if (!Number.isInteger(size) || size < 1 || size > MAX_SIZE)
    throw new BrigError(`the size of a pool is a whole number from 1 to ${MAX_SIZE}`, {
      code: "usage.invalid",
    });
  if (workspaceKind !== "none")
    throw new BrigError(
      "the sandboxes of a pool have no workspace, since it could change before they are used",
      {
        code: "usage.invalid",
        hint: "leave workspaceKind out, and bring files in with sandbox.files, or use Sandbox.create",
      },
    );
  return new Pool(size, { ...others, workspaceKind }, lasting);
}

type StartOptions = Omit<PoolOptions, "size">;
/** Names a directory that is not there yet. */
type NewDirectory = () => string;

/** A caller that waits for a sandbox, or for the pool to be full. */
interface Waiter<T> {
  resolve(value: T): void;
  reject(error: unknown): void;
}

class Pool implements SandboxPool {
  readonly #size: number;
  readonly #options: StartOptions;
  readonly #lasting: NewDirectory | undefined;
  readonly #warn: Warn;
  readonly #closed = new AbortController();
  readonly #ready: IdleSandbox[] = [];
  readonly #waiting: Waiter<IdleSandbox>[] = [];
  readonly #fillWaiting: Waiter<void>[] = [];
  readonly #running = new Set<Promise<void>>();
  #startingCount = 0;
  #hasHandedOver = false;
  #failuresInARow = 0;
  #isResting = false;

  constructor(size: number, options: StartOptions, lasting: NewDirectory | undefined) {
    this.#size = size;
    this.#lasting = lasting;
    this.#options = options;
    this.#warn = warner(options);
    this.#refill();
  }

  get readyCount(): number {
    return this.#ready.length;
  }

  async acquire(options: AcquireOptions = {}): Promise<Sandbox> {
    refuseUnknownOptions(options, acquireOptionNames, { of: "pool.acquire" });
    const { signal } = options;
    for (;;) {
      signal?.throwIfAborted();
      const idle = await this.#next(signal);
      const checking = this.#isFit(idle);
      try {
        if (await beforeAbort(checking, signal)) return this.#handOver(idle);
      } catch (error) {
        this.#track(checking.then((isFit) => (isFit ? this.#offer(idle) : undefined)));
        throw error;
      } finally {
        this.#refillSoon();
      }
    }
  }

  async filled(options: AcquireOptions = {}): Promise<void> {
    refuseUnknownOptions(options, acquireOptionNames, { of: "pool.filled" });
    this.#requireOpen();
    if (this.#ready.length >= this.#size) return;
    const full = this.#wait(this.#fillWaiting, options.signal);
    this.#refill();
    await full;
  }

  async close(): Promise<void> {
    if (!this.#closed.signal.aborted) {
      this.#closed.abort(closed());
      for (const waiter of [...this.#waiting.splice(0), ...this.#fillWaiting.splice(0)])
        waiter.reject(closed());
      for (const idle of this.#ready.splice(0)) this.#discard(idle);
    }
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #next(signal: AbortSignal | undefined): Promise<IdleSandbox> {
    this.#requireOpen();
    const ready = this.#ready.shift();
    if (ready !== undefined) return ready;
    const next = this.#wait(this.#waiting, signal, (idle) => this.#offer(idle));
    this.#refill();
    return await next;
  }

  /** `onUnused` gets what was given at the very moment of the abort. */
  async #wait<T>(
    waiters: Waiter<T>[],
    signal: AbortSignal | undefined,
    onUnused: (value: T) => void = () => undefined,
  ): Promise<T> {
    let waiter: Waiter<T> | undefined;
    const given = new Promise<T>((resolve, reject) => {
      waiter = { resolve, reject };
      waiters.push(waiter);
    });
    try {
      return await beforeAbort(given, signal);
    } catch (error) {
      const at = waiter === undefined ? -1 : waiters.indexOf(waiter);
      if (at >= 0) waiters.splice(at, 1);
      else void given.then(onUnused, () => undefined);
      throw error;
    }
  }

  #handOver(idle: IdleSandbox): Sandbox {
    this.#hasHandedOver = true;
    idle.onClose = () => this.#refill();
    return idle.handOver();
  }

  #refill(): void {
    if (this.#closed.signal.aborted) return;
    const wanted = startsWanted({
      size: this.#size,
      ready: this.#ready.length,
      waiting: this.#waiting.length,
      isFilling: this.#fillWaiting.length > 0 || !this.#hasHandedOver,
      isResting: this.#isResting,
      cores: availableParallelism(),
    });
    for (let count = this.#startingCount; count < wanted; count++) this.#track(this.#start());
  }

  /** Not at once, unless somebody waits. */
  #refillSoon(): void {
    const refill = () => this.#refill();
    this.#track(pause(REFILL_AFTER_MS, this.#closed.signal).then(refill, () => undefined));
  }

  async #start(): Promise<void> {
    this.#startingCount++;
    try {
      const lasting = this.#lasting?.();
      const idle = await IdleSandbox.start(
        { ...this.#options, signal: this.#closed.signal },
        { pool: this, lasting },
      );
      this.#startingCount--;
      this.#failuresInARow = 0;
      this.#offer(idle);
      this.#refillSoon();
    } catch (error) {
      this.#startingCount--;
      this.#failed(error);
    }
  }

  #offer(idle: IdleSandbox): void {
    if (this.#closed.signal.aborted) {
      this.#discard(idle);
      return;
    }
    const waiter = this.#waiting.shift();
    if (waiter !== undefined) {
      waiter.resolve(idle);
      return;
    }
    this.#ready.push(idle);
    idle.onGone = () => {
      const at = this.#ready.indexOf(idle);
      if (at < 0) return;
      this.#ready.splice(at, 1);
      this.#discard(idle);
      this.#refill();
    };
    if (this.#ready.length >= this.#size) for (const one of this.#fillWaiting.splice(0)) one.resolve();
  }

  #failed(error: unknown): void {
    if (this.#closed.signal.aborted) return;
    this.#failuresInARow++;
    const waiters = [...this.#waiting.splice(0, 1), ...this.#fillWaiting.splice(0)];
    if (waiters.length === 0) this.#warn(error);
    for (const waiter of waiters) waiter.reject(error);
    if (!this.#isResting) this.#track(this.#rest());
  }

  /** The pool is refilled again later. Whoever waits meanwhile has a start of its own. */
  async #rest(): Promise<void> {
    this.#isResting = true;
    await pause(restMs(this.#failuresInARow), this.#closed.signal).catch(() => undefined);
    this.#isResting = false;
    this.#refill();
  }

  /** Whether it is as it was when it was started, and of the image that the name stands for now. */
  async #isFit(idle: IdleSandbox): Promise<boolean> {
    try {
      const [isCurrent] = await Promise.all([idle.hasCurrentImage(), idle.proveClean()]);
      if (isCurrent) return true;
    } catch (error) {
      if (!isBrigError(error, "sandbox.gone")) this.#warn(error);
    }
    this.#discard(idle);
    return false;
  }

  #discard(idle: IdleSandbox): void {
    this.#track(idle.close().catch(this.#warn));
  }

  /** `close` waits for everything that goes on without a caller. */
  #track(running: Promise<void>): void {
    this.#running.add(running);
    void running.finally(() => this.#running.delete(running));
  }

  #requireOpen(): void {
    if (this.#closed.signal.aborted) throw closed();
  }
}

function closed(): BrigError {
  return new BrigError("the pool is closed", { code: "usage.invalid", hint: "create another one" });
}

/** The options of `createPool`: those of sandboxes without a workspace, and the size. */
export interface PoolOptions
  extends Pick<
    SandboxOptions,
    | "mode"
    | "policyFile"
    | "image"
    | "runtime"
    | "limits"
    | "network"
    | "leaseSeconds"
    | "env"
    | "engine"
    | "docker"
    | "maxStartsAtOnce"
    | "onWarning"
  > {
  /** The number of sandboxes that are kept ready, 1 to 1000. Default 4. */
  size?: number | undefined;
  /** Only "none": a workspace could change between the start of a sandbox and its use. */
  workspaceKind?: "none" | undefined;
}

/** Sandboxes that are started before they are needed. Close it, or use `await using`. */
export interface SandboxPool extends AsyncDisposable {
  /** The number of sandboxes that could be handed over now. */
  readonly readyCount: number;
  /**
   * Hands over a sandbox that nobody has used, which the caller closes, and starts another one in its place. If
   * none is ready, waits for one, in the order of the calls. Errors: those of `Sandbox.create`, or the signal's
   * reason; `usage.invalid` once the pool is closed.
   */
  acquire(options?: AcquireOptions): Promise<Sandbox>;
  /** Resolves when `size` sandboxes are ready. Errors: as `acquire`. */
  filled(options?: AcquireOptions): Promise<void>;
  /** Ends the waiting calls, and closes what was not handed over. May be called again. */
  close(): Promise<void>;
}

/** Options of a wait for the pool. */
export interface AcquireOptions {
  /** Aborting ends the wait. The sandbox that was on its way stays in the pool. */
  signal?: AbortSignal | undefined;
}

const [FIRST_PAUSE_MS, LONGEST_PAUSE_MS] = [1_000, 60_000];

export interface PoolState {
  size: number;
  ready: number;
  /** Callers that wait for a sandbox. */
  waiting: number;
  /** A caller waits for the pool to be full, or nobody has had a sandbox of it yet. */
  isFilling: boolean;
  /** A start has failed, and its pause is not over yet. */
  isResting: boolean;
  cores: number;
}

/**
 * The number of sandboxes that a pool starts at the same time. While callers wait, only theirs are started, which are ready sooner then.
 * Sandboxes that nobody waits for yet are started on half of the processors at most, so that the calls in other sandboxes stay
 * quick. A pool that is being filled starts all at once.
 */
export function startsWanted({ size, ready, waiting, isFilling, isResting, cores }: PoolState): number {
  const missing = isResting ? 0 : Math.max(0, size - ready);
  if (isFilling) return waiting + missing;
  return waiting > 0 ? waiting : Math.min(missing, Math.max(1, Math.floor(cores / 2)));
}

/** The wait after a start that failed. It doubles with each failure in a row. */
export function restMs(failuresInARow: number): number {
  return Math.min(FIRST_PAUSE_MS * 2 ** (failuresInARow - 1), LONGEST_PAUSE_MS);
}

/** A started sandbox that nobody has used yet. */
class IdleSandbox {
  readonly #opened: OpenedSandbox;
  readonly #pool: object;

  private constructor(opened: OpenedSandbox, pool: object) {
    this.#opened = opened;
    this.#pool = pool;
    tellIfForgotten(opened, pool);
  }

  /** Errors: as `Sandbox.create`. A failure leaves nothing behind. */
  static async start(
    options: SandboxOptions,
    { pool, lasting }: { pool: object; lasting: string | undefined },
  ): Promise<IdleSandbox> {
    try {
      return new IdleSandbox(await createSandbox(options, { lasting }), pool);
    } catch (error) {
      await removeDirectory(lasting);
      throw error;
    }
  }

  /** Whether the image's name still stands for the image that it was started from. */
  async hasCurrentImage(): Promise<boolean> {
    const { engine, plan, proof } = this.#opened;
    return (await engine.inspectImage(plan.image))?.id === proof.imageId;
  }

  /** Called once if it ends by itself. */
  set onGone(listener: () => void) {
    this.#opened.link.onGone = listener;
  }

  /** Called when the caller that the sandbox was handed over to begins to close it. */
  set onClose(listener: () => void) {
    closeFirst(this.#opened, { [Symbol.asyncDispose]: async () => listener() });
  }

  /**
   * Reads the policy back from the kernel once more, and looks for programs: no command has run in the sandbox
   * yet. Errors: `sandbox.gone`, `policy.not-enforced`.
   */
  async proveClean(): Promise<void> {
    const { link, plan, engine, proof } = this.#opened;
    const { report } = await proveLink(link, { plan, engine, imageId: proof.imageId });
    if (report.processes === null) throw notClean("its kernel does not say what runs in it");
    const runner = basename(runnerPath(plan));
    // A worker of the runner becomes another program for file operations. The kernel keeps 15 bytes of a name.
    const own = [runner, `${runner}-files`.slice(0, 15)];
    const programs = report.processes.filter((name) => !own.includes(name));
    if (programs.length === 0) return;
    const list = programs.map((name) => JSON.stringify(name)).join(", ");
    throw notClean(`brig has not started ${list}, which run${programs.length === 1 ? "s" : ""} in it`);
  }

  handOver(): Sandbox {
    tellIfForgotten(this.#opened, this.#pool);
    return sandboxFrom(this.#opened);
  }

  async close(): Promise<void> {
    await sandboxFrom(this.#opened).close();
    await removeDirectory(this.#opened.options.lasting);
  }
}

async function removeDirectory(path: string | undefined): Promise<void> {
  if (path !== undefined) await rm(path, { recursive: true, force: true });
}

function notClean(reason: string): BrigError {
  return new BrigError(`a sandbox of the pool is not clean: ${reason}`, { code: "policy.not-enforced" });
}
