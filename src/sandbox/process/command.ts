import type { BrigError } from "../../errors.js";
import { afterLivedTime, type LivedTimer } from "../../lib/time/lived-time.js";
import { sharedSignal } from "../../lib/time/shared-signal.js";
import type { ChannelEvents } from "../channel/channel-events.js";
import { protocolError } from "../channel/frames.js";
import type { ChannelHistory } from "../channel/link-journal.js";
import { FrameType, INITIAL_CREDIT } from "../channel/protocol.js";
import type { RunnerLink } from "../channel/runner-link.js";
import type { SecretMask } from "../egress/secrets/secret-mask.js";
import type { CallCause } from "../output/call-cause.js";
import type { CommandEnd } from "../output/command-end.js";
import type { SpawnOptions } from "../sandbox-types.js";
import {
  type ExitRecord,
  exitStatus,
  isWithoutRoom,
  LEFTOVERS_ENDED,
  parseExit,
  startError,
} from "./exit-record.js";
import { encodeSpawn, encodeUint32, KILL_GRACE_MS } from "./spawn-request.js";

/** The settings and connections that all commands of a session share. */
export interface CommandContext {
  link: RunnerLink;
  cwd: string;
  env: Readonly<Record<string, string>>;
  /** The sandbox's allow-list at work. */
  egress?: CommandEgress | undefined;
  /** Hides the sandbox's secrets in the output of its commands. Absent without secrets. */
  mask?: SecretMask | undefined;
  /** Whether its requests are sent although the sandbox is being closed and takes no others. */
  isLast?: true | undefined;
  /** Called when the runner cannot end a process tree, so that the container has to be killed. */
  onStuck(): void;
}

interface CommandEgress {
  /** Attempts of the channel's processes belong to the call from now on. */
  nameCall(channel: number, callId: string): void;
  /** A text about the refusals, for the end of the command's output; may be empty. */
  textFor(command: { channel: number; startedAtMs: number; isOnTerminal: boolean }): string;
  /** The refusals to processes of the channel. */
  causesFor(channel: number): CallCause[];
  /** Error: `sandbox.canary-sent`. */
  requireNoCanarySent(): Promise<void>;
}

interface StartOptions extends Omit<SpawnOptions, "stdin"> {
  /** The command was started by another process, which is gone. Default: it is started. */
  begun?: BegunRequest | undefined;
  /** Called with the number by which the runner knows the command, and again if it has to be started again. */
  onChannel?: ((channel: number) => void) | undefined;
  hasStdin: boolean;
  onOutput(data: Buffer, isStderr: boolean): unknown;
}

export interface StartedCommand {
  command: Command;
  /** Errors: `exec.bad-cwd`, `exec.invalid`, the signal's reason after an abort, `sandbox.gone`. */
  exit: Promise<CommandEnd>;
  /** The text that brig adds to the output of the command when it has ended; may be empty. */
  notes(): string;
}

/** Sends the request for a command. Errors: `exec.invalid`, or the signal's reason. */
export function startCommand(
  context: CommandContext,
  argv: readonly string[],
  { hasStdin, onOutput, onChannel, begun, ...options }: StartOptions,
): StartedCommand {
  options.signal?.throwIfAborted();
  const { timeoutMs, signal, callId } = options;
  const cwd = options.cwd ?? context.cwd;
  const payload = encodeSpawn({
    argv,
    cwd,
    env: options.env ? { ...context.env, ...options.env } : context.env,
    timeoutMs,
    pty: options.pty,
    hasStdin,
    mergeOutput: options.mergeOutput ?? false,
    endsTree: options.endsTree ?? false,
  });
  context.link.beforeCommand?.();
  const startedAtMs = Date.now();
  const isOnTerminal = options.pty !== undefined;
  const masked = context.mask?.output(onOutput) ?? null;
  const command = new Command(
    context.link,
    { type: FrameType.spawn, payload, timeoutMs, signal },
    {
      onOutput: masked === null ? onOutput : (data, isStderr) => masked.take(data, isStderr),
      onStuck: context.onStuck,
      onChannel(channel) {
        onChannel?.(channel);
        if (callId !== undefined) context.egress?.nameCall(channel, callId);
      },
    },
    begun,
  );
  const ended = masked === null ? command.ended : command.ended.finally(() => masked.end());
  const exit = ended.then(async (record) => {
    await context.egress?.requireNoCanarySent();
    signal?.throwIfAborted();
    const failure = startError(record, { argv, cwd });
    if (failure) throw failure;
    if (record.treeLeft) context.onStuck();
    const status = exitStatus(record, String(argv[0]));
    const refused = status.exitCode === 0 ? [] : (context.egress?.causesFor(command.channel) ?? []);
    return { ...status, causes: [...status.causes, ...refused] };
  });
  const notes = () => {
    const { channel, leftoversNote } = command;
    return leftoversNote + (context.egress?.textFor({ channel, startedAtMs, isOnTerminal }) ?? "");
  };
  return { command, exit, notes };
}

const CREDIT_STEP = 64 * 1024;
const INPUT_PIECE = 64 * 1024;
/** The runner ends a tree within the grace and five seconds of SIGKILL; after this it is stuck. */
const STUCK_AFTER_MS = KILL_GRACE_MS + 15_000;
/** The time that the EXIT frame may take to arrive after the runner's answer to a ping. */
const EXIT_AFTER_PING_MS = 2000;
/** Pauses before further attempts to start, while leftovers of earlier commands are being ended. */
const RETRY_AFTER_MS = [20, 50, 100, 200, 400, 800, 1600, 1600];

export interface CommandEvents {
  /** A returned promise pauses the output. An error ends the command and becomes its error. */
  onOutput(data: Buffer, isStderr: boolean): unknown;
  /** Called when the runner did not end a process tree in time, so that the container has to be killed. */
  onStuck(): void;
  /** The number by which the runner knows it, before it starts. Called again if it has to be started again. */
  onChannel?(channel: number): void;
}

interface Request {
  type: number;
  payload: Buffer;
  timeoutMs?: number | undefined;
  isLast?: boolean;
  signal?: AbortSignal | undefined;
}

/** A request that another process has sent, and what came of it so far. */
export interface BegunRequest {
  channel: number;
  history: ChannelHistory;
}

/** One request to the runner, command or file operation, from its first frame to EXIT. */
export class Command implements ChannelEvents {
  readonly ended: Promise<ExitRecord>;
  readonly #link: RunnerLink;
  readonly #events: CommandEvents;
  readonly #request: Request;
  readonly #onAbort = () => this.kill();
  #channel: number;
  #attempts = 0;
  /** Memory was lacking because leftovers of earlier commands held it. These were ended. */
  #hasLackedMemory = false;
  /** Needed if the command has to be started again; null once it runs. */
  #inputToResend: Buffer[] | null = [];
  #isKilled = false;
  #resolve!: (record: ExitRecord) => void;
  #reject!: (error: unknown) => void;
  #isOver = false;
  #failure: { error: unknown } | undefined;
  #outputCredit = INITIAL_CREDIT;
  #consumed = 0;
  #inputCredit = INITIAL_CREDIT;
  #inputWaiter: (() => void) | undefined;
  #watchdog: LivedTimer | undefined;

  /** Sends the request, unless it has `begun`: then it goes on with it, and `onOutput` gets what is known of its output first. */
  constructor(link: RunnerLink, request: Request, events: CommandEvents, begun?: BegunRequest) {
    this.#link = link;
    this.#events = events;
    this.#request = request;
    this.ended = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.#channel = begun?.channel ?? link.openChannel(request, this);
    events.onChannel?.(this.#channel);
    if (begun !== undefined) this.#goOn(begun.history);
    if (!this.#isOver && request.timeoutMs !== undefined) this.#watch(request.timeoutMs + STUCK_AFTER_MS);
    if (request.signal !== undefined)
      sharedSignal(request.signal).addEventListener("abort", this.#onAbort, { once: true });
  }

  #goOn({ totals, frames }: ChannelHistory): void {
    this.#inputToResend = null;
    if (totals !== null) {
      this.#outputCredit += totals.outputCredit - totals.outputBytes;
      this.#inputCredit += totals.inputCredit - totals.inputBytes;
      this.#link.adoptChannel(this.#channel, this);
    }
    for (const { type, payload } of frames)
      if (type === FrameType.exit) this.onExit(payload);
      else this.#deliver(payload, type === FrameType.stderr);
    if (totals !== null) this.#consume(totals.outputBytes - totals.outputCredit);
  }

  /** A note about processes left by earlier commands that had to be ended; empty if none had. */
  get leftoversNote(): string {
    const before = this.#attempts > 0 ? LEFTOVERS_ENDED.beforeStart : "";
    return before + (this.#hasLackedMemory ? LEFTOVERS_ENDED.forMemory : "");
  }

  /** The number by which the runner knows it. */
  get channel(): number {
    return this.#channel;
  }

  /** SIGTERM to the whole tree, then SIGKILL after the grace. `ended` resolves when it is gone. */
  kill(graceMs = KILL_GRACE_MS): void {
    if (!this.#isOver) this.#watch(graceMs + STUCK_AFTER_MS);
    this.#isKilled = true;
    this.#link.send(FrameType.kill, this.#channel, encodeUint32(graceMs));
  }

  /** Signals the process group, or the foreground group of a terminal. */
  signal(number: number): void {
    this.#link.send(FrameType.signal, this.#channel, Buffer.of(number));
  }

  resize(payload: Buffer): void {
    this.#link.send(FrameType.resize, this.#channel, payload);
  }

  /** Resolves when the last byte is sent, or at once when the command has ended. */
  async write(data: Buffer): Promise<void> {
    for (let at = 0; at < data.length && !this.#isOver; ) {
      if (this.#inputCredit === 0) {
        await new Promise<void>((resolve) => {
          this.#inputWaiter = resolve;
        });
        continue;
      }
      const piece = data.subarray(at, at + Math.min(INPUT_PIECE, this.#inputCredit));
      this.#inputCredit -= piece.length;
      this.#sendInput(piece);
      at += piece.length;
    }
  }

  endInput(): void {
    if (!this.#isOver) this.#sendInput(Buffer.alloc(0));
  }

  /** Writes all input and ends it. Sends nothing for empty input, which the request itself announces. */
  async writeAll(data: Uint8Array): Promise<void> {
    if (data.length === 0) return;
    await this.write(Buffer.from(data.buffer, data.byteOffset, data.byteLength));
    this.endInput();
  }

  #sendInput(piece: Buffer): void {
    this.#inputToResend?.push(Buffer.from(piece));
    this.#link.send(FrameType.input, this.#channel, piece);
  }

  onOutput(data: Buffer, isStderr: boolean): void {
    this.#inputToResend = null;
    this.#outputCredit -= data.length;
    if (this.#outputCredit < 0) throw protocolError("more output than it was granted");
    const bytes = data.length;
    const pending = this.#deliver(data, isStderr);
    if (pending instanceof Promise)
      pending.then(
        () => this.#consume(bytes),
        (error: unknown) => {
          this.#fail(error);
          this.#consume(bytes);
        },
      );
    else this.#consume(bytes);
  }

  onCredit(bytes: number): void {
    this.#inputToResend = null;
    this.#inputCredit += bytes;
    this.#releaseInput();
  }

  onExit(payload: Buffer): void {
    if (this.#mayRetryStart(payload)) {
      this.#retryStart();
      return;
    }
    this.#finish();
    try {
      if (this.#failure) this.#reject(this.#failure.error);
      const record = parseExit(payload);
      this.#hasLackedMemory = record.leftoversEnded;
      this.#resolve(record);
    } catch (error) {
      this.#reject(error);
      throw error;
    }
  }

  onGone(error: BrigError): void {
    this.#finish();
    this.#reject(error);
  }

  #mayRetryStart(payload: Buffer): boolean {
    return (
      isWithoutRoom(payload) &&
      !this.#isKilled &&
      this.#inputToResend !== null &&
      this.#attempts < RETRY_AFTER_MS.length
    );
  }

  /** Leftovers of earlier commands use up the processes, the memory or the terminals: ends them and tries again. */
  #retryStart(): void {
    if (this.#attempts === 0) this.#link.endLeftovers();
    const timer = setTimeout(() => {
      if (this.#isOver) return;
      try {
        this.#channel = this.#link.openChannel(this.#request, this);
        this.#events.onChannel?.(this.#channel);
        for (const piece of this.#inputToResend ?? []) this.#link.send(FrameType.input, this.#channel, piece);
        if (this.#isKilled) this.kill();
      } catch (error) {
        this.#finish();
        this.#reject(error);
      }
    }, RETRY_AFTER_MS[this.#attempts]);
    timer.unref();
    this.#attempts++;
  }

  #deliver(data: Buffer, isStderr: boolean): unknown {
    if (this.#failure) return undefined;
    try {
      return this.#events.onOutput(data, isStderr);
    } catch (error) {
      this.#fail(error);
      return undefined;
    }
  }

  #fail(error: unknown): void {
    this.#failure ??= { error };
    this.kill();
  }

  #consume(bytes: number): void {
    this.#consumed += bytes;
    if (this.#consumed < CREDIT_STEP || this.#isOver) return;
    this.#outputCredit += this.#consumed;
    this.#link.send(FrameType.credit, this.#channel, encodeUint32(this.#consumed));
    this.#consumed = 0;
  }

  #releaseInput(): void {
    const release = this.#inputWaiter;
    this.#inputWaiter = undefined;
    release?.();
  }

  #finish(): void {
    this.#isOver = true;
    this.#request.signal?.removeEventListener("abort", this.#onAbort);
    this.#watchdog?.cancel();
    this.#releaseInput();
  }

  #watch(afterMs: number): void {
    this.#watchdog?.cancel();
    this.#watchdog = afterLivedTime(afterMs, () => void this.#checkStuck());
  }

  /**
   * Only a runner that answers is stuck. Otherwise this process was suspended, the container is paused or the
   * stream is dead, and the link waits for the answer.
   */
  async #checkStuck(): Promise<void> {
    const watchdog = this.#watchdog;
    await this.#link.ping().catch(() => undefined);
    if (this.#isOver || this.#watchdog !== watchdog) return;
    this.#watchdog = afterLivedTime(EXIT_AFTER_PING_MS, () => this.#events.onStuck());
  }
}
