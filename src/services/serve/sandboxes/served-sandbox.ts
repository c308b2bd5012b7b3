import type { AttemptResult } from "../../../batch/index.js";
import { BrigError, invalidUsage } from "../../../errors.js";
import { seal } from "../../../lib/seal.js";
import { AnySignal } from "../../../lib/time/any-signal.js";
import { LONGEST_TIMER_MS } from "../../../lib/time/pause.js";
import { pauseSandbox, type Receipt, type Sandbox, unpauseSandbox } from "../../../sandbox/index.js";
import { WatchSet } from "../files/watch-set.js";
import type { MemoryShare } from "../http/memory-budget.js";
import { Refusal } from "../http/refusal.js";
import { forgetKept, type Opening, removeKept, writeKept } from "../kept/kept-records.js";
import type { OutputBudget } from "../processes/output-budget.js";
import type { OutputStreamName } from "../processes/output-log.js";
import { type NotedCommands, ProcessTable } from "../processes/process-table.js";
import type { RemoteEgress } from "../wire/account-schemas.js";
import type { RemoteSandboxRecord } from "../wire/schemas.js";
import { CommandLog } from "./command-log.js";
import type { EgressCounts } from "./egress-counts.js";
import type { KnownKey } from "./idempotent-creates.js";
import type { Need } from "./machine-room.js";
import { replaceNetwork } from "./replace-network.js";
import type { ServedEgress } from "./served-egress.js";
import { UsageWatch } from "./usage.js";

/** After this time a removal is tried again that the engine did not confirm. */
const REMOVE_AGAIN_MS = 30_000;

export interface ServedSandboxOptions {
  id: string;
  client: string;
  opened: OpenedPlace;
  /** For all commands. */
  env: Readonly<Record<string, string>>;
  /** Default: none. */
  labels?: Readonly<Record<string, string>> | undefined;
  idleMs: number;
  /** When it expires, unless its client asks for another time. */
  maxLifeMs: number;
  /** The longest life that its client can ask for. */
  longestLifeMs: number;
  /** It is paused when it expires, until its longest life is over. Default: it is removed then. */
  pausesAtExpiry?: boolean | undefined;
  /** When an earlier service has created it, and when it expires. Default: it is created now. */
  since?: { createdAt: Date; expiresAt: Date } | undefined;
  /** What another protocol of an earlier service knew of it, as JSON. Default: nothing. */
  protocolState?: unknown;
  /** The key that its create came with. Default: none. */
  key?: KnownKey | undefined;
  /** Its place among those of the service. */
  seat: Disposable;
  /** What it takes. Default: nothing that counts. */
  need?: Need | undefined;
  /** What its processes' outputs are kept in. Default: in a budget of their own. */
  outputs?: OutputBudget | undefined;
  /** Where what is kept of it counts. Default: nowhere. */
  memory?: MemoryShare | undefined;
  /** Error: a refusal with 403 for a network that its client may not have. */
  requireNetwork: (network: string) => void;
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
  /** Called with all output of commands. Default: nobody is. */
  onOutput?: OutputListener | undefined;
}

type OutputListener = (stream: OutputStreamName, data: Uint8Array) => void;

/** One sandbox of one client. */
export class ServedSandbox {
  readonly id: string;
  readonly client: string;
  /** Its processes that run on without a call. While one does, the sandbox is not idle. */
  readonly processes: ProcessTable;
  /** The commands of calls. */
  readonly commands = new CommandLog();
  readonly usage: UsageWatch;
  readonly watches = new WatchSet();
  readonly #options: ServedSandboxOptions;
  readonly #createdAt: Date;
  readonly #ending = new AbortController();
  /** As `Date.now()` counts. */
  #expiresAt: number;
  /** Null while something uses it. */
  #idleSinceMs: number | null = Date.now();
  #network: string;
  #protocolState: unknown;
  #lifeTimer: NodeJS.Timeout | undefined;
  #idleTimer: NodeJS.Timeout | undefined;
  #callCount = 0;
  #state: RemoteSandboxRecord["state"] = "open";
  #grading: Promise<AttemptResult> | undefined;
  #removing: Promise<Receipt | null> | undefined;
  #receipt: Receipt | null = null;
  #isRemoved = false;
  #isPaused = false;
  /** Each waits for the one before. */
  #pausing: Promise<void> = Promise.resolve();

  constructor(options: ServedSandboxOptions) {
    this.#options = options;
    this.id = options.id;
    this.client = options.client;
    this.#createdAt = options.since?.createdAt ?? new Date();
    this.#expiresAt = options.since?.expiresAt.getTime() ?? this.#createdAt.getTime() + options.maxLifeMs;
    this.#network = options.opened.network;
    this.#protocolState = options.protocolState ?? null;
    this.#waitLife(Math.max(0, this.#expiresAt - Date.now()));
    this.#waitIdle(options.idleMs);
    this.usage = new UsageWatch(options.opened.sandbox);
    const { sandbox, workingDirectory: cwd, onOutput, noted } = options.opened;
    this.processes = new ProcessTable({
      ...{ sandbox, cwd, env: options.env, signal: this.#ending.signal, onOutput, noted },
      ...{ outputs: options.outputs, memory: options.memory },
      hold: () => this.hold(),
    });
    options.opened.onEnding?.(() => void this.#leavePlace());
  }

  get record(): RemoteSandboxRecord {
    const { opened, idleMs } = this.#options;
    const { image, mode, task, instruction, workingDirectory } = opened;
    return {
      id: this.id,
      state: this.#state,
      image,
      mode,
      network: this.#network,
      task,
      instruction,
      workingDirectory,
      labels: this.labels,
      createdAt: this.#createdAt.toISOString(),
      idleMs,
      expiresAt: new Date(this.#expiresAt).toISOString(),
    };
  }

  /** What the service itself asks of it. A call of a client goes through `use`. */
  get sandbox(): Sandbox {
    return this.#options.opened.sandbox;
  }

  /** What its programs tried to reach, one by one. */
  get egressLog(): RemoteEgress {
    return this.#options.opened.egressLog?.now ?? { attempts: [], proposal: null };
  }

  /** What it has left; null while it is there, and for the container of a task. */
  get receipt(): Receipt | null {
    return this.#receipt;
  }

  get labels(): Readonly<Record<string, string>> {
    return this.#options.labels ?? {};
  }

  /** Null if nobody watches what its programs reach. */
  get egress(): EgressCounts | null {
    return this.#options.opened.egress ?? null;
  }

  /** As `Date.now()` counts. */
  get times(): { createdAtMs: number; idleSinceMs: number | null; expiresAtMs: number } {
    const [createdAtMs, expiresAtMs] = [this.#createdAt.getTime(), this.#expiresAt];
    return { createdAtMs, idleSinceMs: this.#idleSinceMs, expiresAtMs };
  }

  get need(): Need | undefined {
    return this.#options.need;
  }

  /** Whether it takes no more calls because it is not there any more. */
  get hasEnded(): boolean {
    return this.#state === "ended" || this.#isRemoved;
  }

  /** Whether its processes are frozen. Then it takes no calls. */
  get isPaused(): boolean {
    return this.#isPaused;
  }

  /** Whether it is paused when it expires. */
  get pausesAtExpiry(): boolean {
    return this.#options.pausesAtExpiry === true;
  }

  /**
   * Freezes its processes, which keep their memory, until `unpause` or the end of its longest life. Calls under way wait. False if it is paused
   * already. Errors: `sandbox.gone`; `engine.failed`; `store.failed`.
   */
  async pause(): Promise<boolean> {
    return await this.#inTurn(async () => {
      if (this.#isPaused) return false;
      this.#isPaused = true;
      try {
        await pauseSandbox(this.sandbox);
        this.extend(this.#options.longestLifeMs);
        return true;
      } catch (error) {
        this.#isPaused = false;
        await unpauseSandbox(this.sandbox).catch(() => undefined);
        throw error;
      }
    });
  }

  /** Its processes go on, and it expires so long from now. False if it was not paused. Errors: `sandbox.gone`; `engine.failed`; `store.failed`. */
  async unpause(lifeMs: number): Promise<boolean> {
    return await this.#inTurn(async () => {
      if (!this.#isPaused) return false;
      await unpauseSandbox(this.sandbox);
      this.#isPaused = false;
      this.extend(lifeMs);
      return true;
    });
  }

  async #inTurn(change: () => Promise<boolean>): Promise<boolean> {
    const changed = this.#pausing.then(async () => {
      if (this.#ending.signal.aborted) throw this.#ending.signal.reason;
      return await change();
    });
    this.#pausing = changed.then(
      () => undefined,
      () => undefined,
    );
    return await changed;
  }

  /** Has the next service find it as it is now, if it outlives this one. Error: `store.failed`, and then it does not. */
  note(): void {
    const { client, env, key = null, maxLifeMs, opened } = this.#options;
    if (opened.kept === undefined || this.#ending.signal.aborted) return;
    const { directory, opening, sealKey } = opened.kept;
    const state = this.#protocolState;
    const protocol = state === null || sealKey === undefined ? null : seal(JSON.stringify(state), sealKey);
    writeKept(directory, {
      client,
      env: { ...env },
      key,
      maxLifeMs,
      opening,
      protocol,
      sandbox: this.record,
      isPaused: this.#isPaused,
      pausesAtExpiry: this.pausesAtExpiry,
    });
  }

  /** What another protocol knows of it, for the next service as well. Null if none knows it. */
  get protocolState(): unknown {
    return this.#protocolState;
  }

  /** Error: `store.failed`. */
  keepProtocolState(state: object): void {
    this.#protocolState = state;
    this.note();
  }

  /** It expires so long from now, later or earlier than before, but never after its longest life. Errors: `sandbox.gone`; `store.failed`. */
  extend(lifeMs: number): void {
    if (this.#ending.signal.aborted) throw this.#ending.signal.reason;
    using _call = this.hold();
    const latest = this.#createdAt.getTime() + this.#options.longestLifeMs;
    this.#expiresAt = Math.min(Date.now() + lifeMs, latest);
    clearTimeout(this.#lifeTimer);
    this.#waitLife(Math.max(0, this.#expiresAt - Date.now()));
    this.note();
  }

  /** Replaces the hosts that it may reach. Errors: `sandbox.gone`; `store.failed`; `usage.invalid`; refusals with 403, and with 409 if its network cannot change. */
  setNetwork(network: string): void {
    if (this.#ending.signal.aborted) throw this.#ending.signal.reason;
    using _call = this.hold();
    this.#options.requireNetwork(network);
    this.#network = replaceNetwork(this.#options.opened, network);
    this.note();
  }

  /** Runs a call in it, during which it is not idle. Errors: `sandbox.gone` once it ends; those of the call. */
  async use<T>(signal: AbortSignal, run: (inUse: InUse) => Promise<T>): Promise<T> {
    const { opened, env } = this.#options;
    this.#requireRunning();
    using either = new AnySignal([signal, this.#ending.signal]);
    using _call = this.hold();
    const { sandbox, workingDirectory: cwd, onOutput } = opened;
    return await run({ sandbox, cwd, env, signal: either.signal, onOutput });
  }

  /** The same for a call that gives pieces: it ends with its reader. */
  async *pieces<T>(signal: AbortSignal, run: (inUse: InUse) => AsyncIterable<T>): AsyncGenerator<T> {
    const { opened, env } = this.#options;
    this.#requireRunning();
    using either = new AnySignal([signal, this.#ending.signal]);
    using _call = this.hold();
    const { sandbox, workingDirectory: cwd, onOutput } = opened;
    yield* run({ sandbox, cwd, env, signal: either.signal, onOutput });
  }

  #requireRunning(): void {
    if (this.#ending.signal.aborted) throw this.#ending.signal.reason;
    if (this.#isPaused) throw paused();
  }

  /** How copies of it are opened, for the same client. Error: `usage.invalid` without a workspace. */
  forking(): (
    signal: AbortSignal,
  ) => Promise<Omit<ServedSandboxOptions, "id" | "seat" | "onExpired" | "requireNetwork">> {
    const { opened, id: _id, seat: _seat, memory: _memory, onExpired: _onExpired, ...own } = this.#options;
    const { since: _since, ...copied } = own;
    const others = { ...copied, key: undefined, protocolState: null };
    const { fork } = requireWorkspace(opened);
    return async (signal) =>
      await this.use(signal, async (inUse) => ({ ...others, opened: await fork(inUse.signal) }));
  }

  /** Runs a call about its workspace. Errors: `usage.invalid` without one; those of `use`. */
  async useWorkspace<T>(signal: AbortSignal, run: (inUse: InUse) => Promise<T>): Promise<T> {
    if (this.sandbox.snapshotId === null) throw withoutWorkspace();
    return await this.use(signal, run);
  }

  /** Ends what runs in it, and grades what is left, once. Error: `usage.invalid` if it is no task's. */
  async grade(): Promise<AttemptResult> {
    const { opened, seat } = this.#options;
    const { grade } = opened;
    if (grade === null) throw invalidUsage("only the sandbox of a task can be graded", "create it with task");
    if (this.#removing !== undefined) throw gone("it is being removed");
    using _call = this.hold();
    this.#grading ??= (async () => {
      // It goes on when the client has gone, and the sandbox is not idle meanwhile.
      using _grading = this.hold();
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
    this.#isRemoved = true;
    this.#ending.abort(gone("it was deleted"));
    clearTimeout(this.#lifeTimer);
    clearTimeout(this.#idleTimer);
    const { kept } = this.#options.opened;
    // The record goes first: the next service would otherwise go on with a sandbox that is half removed.
    if (kept !== undefined) forgetKept(kept.directory);
    this.#removing ??= this.#close();
    try {
      this.#receipt = await this.#removing;
      if (kept !== undefined) removeKept(kept.directory);
    } catch (error) {
      this.#removing = undefined;
      this.#removeLater();
      throw error;
    }
    this.#options.seat[Symbol.dispose]();
    this.#options.memory?.[Symbol.dispose]();
    this.processes.clear();
  }

  async #close(): Promise<Receipt | null> {
    await this.#pausing;
    // What is frozen could neither end in order nor be looked at. A removal also works without.
    if (this.#isPaused) await unpauseSandbox(this.sandbox).catch(() => undefined);
    return await this.#options.opened.close();
  }

  /** Lets the next service go on with it, where that is possible. False where it has to be removed. */
  async letGo(): Promise<boolean> {
    const { kept } = this.#options.opened;
    if (kept === undefined || this.#isRemoved || this.hasEnded || !kept.canBeResumed()) return false;
    this.#isRemoved = true;
    clearTimeout(this.#lifeTimer);
    clearTimeout(this.#idleTimer);
    await kept.letGo();
    this.#ending.abort(gone("its service has ended"));
    return true;
  }

  /** Its container has ended by itself: until it expires its client is told so, but others may have its place. */
  async #leavePlace(): Promise<void> {
    if (this.#ending.signal.aborted) return;
    this.#state = "ended";
    const { kept } = this.#options.opened;
    if (kept !== undefined) forgetKept(kept.directory);
    try {
      await this.#options.opened.close();
    } catch {
      // The container may still be there: its place stays taken until a removal succeeds.
      return;
    }
    if (kept !== undefined) removeKept(kept.directory);
    this.#options.seat[Symbol.dispose]();
  }

  /** It is not idle until what this returns is disposed of. */
  hold(): Disposable {
    this.#callCount++;
    this.#idleSinceMs = null;
    clearTimeout(this.#idleTimer);
    return {
      [Symbol.dispose]: () => {
        this.#callCount--;
        if (this.#callCount === 0) this.#idleSinceMs = Date.now();
        if (this.#callCount === 0 && this.#removing === undefined) this.#waitIdle(this.#options.idleMs);
      },
    };
  }

  #waitLife(leftMs: number): void {
    const turnMs = Math.min(leftMs, LONGEST_TIMER_MS);
    this.#lifeTimer = setTimeout(() => {
      if (leftMs > turnMs) this.#waitLife(leftMs - turnMs);
      else this.#expire();
    }, turnMs);
  }

  #expire(): void {
    const { longestLifeMs, onExpired } = this.#options;
    const mayPause = this.pausesAtExpiry && !this.#isPaused;
    if (mayPause && Date.now() < this.#createdAt.getTime() + longestLifeMs) this.pause().catch(onExpired);
    else onExpired();
  }

  #waitIdle(leftMs: number): void {
    const turnMs = Math.min(leftMs, LONGEST_TIMER_MS);
    clearTimeout(this.#idleTimer);
    this.#idleTimer = setTimeout(() => {
      if (leftMs > turnMs) this.#waitIdle(leftMs - turnMs);
      else this.#options.onExpired();
    }, turnMs);
  }

  /** Its place stays taken, and no client may ever ask again. The service may end meanwhile. */
  #removeLater(): void {
    const { idleMs, onExpired } = this.#options;
    clearTimeout(this.#idleTimer);
    this.#idleTimer = setTimeout(onExpired, Math.min(idleMs, REMOVE_AGAIN_MS)).unref();
  }
}

function requireWorkspace(opened: OpenedPlace): { fork: NonNullable<OpenedPlace["fork"]> } {
  if (opened.fork !== undefined) return { fork: opened.fork };
  throw withoutWorkspace();
}

function withoutWorkspace(): BrigError {
  return invalidUsage(
    "the sandbox has no workspace, which alone can be forked, stored and compared",
    'create it with workspaceKind: "overlay"',
  );
}

function paused(): Refusal {
  return new Refusal("the sandbox is paused", {
    status: 409,
    code: "usage.invalid",
    hint: "connect to it with a client of E2B, which resumes it",
  });
}

function gone(why: string): BrigError {
  return new BrigError(`the sandbox has ended: ${why}`, {
    code: "sandbox.gone",
    reason: "closed",
    hint: "create another one",
  });
}

interface KeptPlace {
  directory: string;
  opening: Opening;
  /** For what nobody may read there. Default: nothing of that is kept. */
  sealKey: Buffer | undefined;
  /** False once that could not be noted which the next service needs. */
  canBeResumed(): boolean;
  /** It goes on without this process, which cannot use it any more. */
  letGo(): Promise<void>;
}

/** What a client works in. */
export interface OpenedPlace {
  sandbox: Sandbox;
  image: string;
  /** Null for the container of a task. */
  mode: string | null;
  /** In the form of `Sandbox.setNetwork`. */
  network: string;
  task: string | null;
  instruction: string | null;
  workingDirectory: string;
  /** Ends the sandbox and grades what is left; null where there is nothing to grade. */
  grade: (() => Promise<AttemptResult>) | null;
  /** Calls the listener when the sandbox begins to end, by itself as well. Null where its end is not the end of the container. */
  onEnding: ((listener: () => void) => void) | null;
  /** Called with the output of all commands. Default: nobody is. */
  onOutput?: OutputListener | undefined;
  /** What its programs have reached. Default: nobody watches that. */
  egress?: EgressCounts | undefined;
  /** How processes are started with which another owner can go on. Default: none can. */
  noted?: NotedCommands | undefined;
  /** How the next service goes on with it. Default: it ends with this one. */
  kept?: KeptPlace | undefined;
  /** Opens a sandbox like it on a copy of its workspace. Default: it has no workspace. */
  fork?: ((signal: AbortSignal) => Promise<OpenedPlace>) | undefined;
  /** What its programs try to reach. Default: nobody keeps that. */
  egressLog?: ServedEgress | undefined;
  /** Ends everything, and says what is left; null where that is not known. May be called again. */
  close(): Promise<Receipt | null>;
}
