import type { BrigError } from "../../errors.js";
import { afterLivedTime, type LivedTimer } from "../../lib/time/lived-time.js";
import { protocolError } from "../channel/frames.js";
import { FrameType, INITIAL_CREDIT } from "../channel/protocol.js";
import type { ChannelEvents, RunnerLink } from "../channel/runner-link.js";
import { type ExitRecord, isWithoutProcess, parseExit } from "./exit-record.js";
import { encodeUint32, KILL_GRACE_MS } from "./spawn-request.js";

const CREDIT_STEP = 64 * 1024;
const INPUT_PIECE = 64 * 1024;
/** The runner gives a tree 500 ms and then five seconds of SIGKILL; after this much more it is stuck itself. */
const STUCK_AFTER_MS = KILL_GRACE_MS + 15_000;
/** For what the runner had to say when it last answered, and that came behind its answer. */
const LAST_WORDS_MS = 2000;
/** How long is waited before each new attempt to start, while what earlier commands have left running is being ended. */
const RETRY_AFTER_MS = [20, 50, 100, 200, 400, 800, 1600, 1600];

export interface CommandEvents {
  /** A returned promise holds the command's output back until it resolves. An error ends the command and is its error. */
  onOutput(data: Buffer, isStderr: boolean): unknown;
  /** The runner did not end a process tree in time: the container has to go. */
  onStuck(): void;
}

/** One request to the runner, command or file operation, from its first frame to EXIT. */
export class Command implements ChannelEvents {
  readonly ended: Promise<ExitRecord>;
  readonly #link: RunnerLink;
  readonly #events: CommandEvents;
  readonly #request: { type: number; payload: Buffer };
  #channel: number;
  #attempts = 0;
  /** Input that a second attempt to start would need; null once the command runs. */
  #early: Buffer[] | null = [];
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

  constructor(
    link: RunnerLink,
    request: { type: number; payload: Buffer; timeoutMs?: number | undefined; isLast?: boolean },
    events: CommandEvents,
  ) {
    this.#link = link;
    this.#events = events;
    this.#request = request;
    this.ended = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.#channel = link.openChannel(request, this);
    if (request.timeoutMs !== undefined) this.#watch(request.timeoutMs + STUCK_AFTER_MS);
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** No process could be started before what earlier commands had left running was ended. */
  get endedLeftovers(): boolean {
    return this.#attempts > 0;
  }

  /** SIGTERM to the whole tree, SIGKILL after the grace; `ended` resolves when the tree is gone. */
  kill(graceMs = KILL_GRACE_MS): void {
    if (!this.#isOver) this.#watch(graceMs + STUCK_AFTER_MS);
    this.#isKilled = true;
    this.#link.send(FrameType.kill, this.#channel, encodeUint32(graceMs));
  }

  /** To the process group, or a terminal's foreground group. */
  signal(number: number): void {
    this.#link.send(FrameType.signal, this.#channel, Buffer.of(number));
  }

  resize(payload: Buffer): void {
    this.#link.send(FrameType.resize, this.#channel, payload);
  }

  /** Resolves when the last byte is on its way, or at once when the command has ended. */
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

  #sendInput(piece: Buffer): void {
    this.#early?.push(Buffer.from(piece));
    this.#link.send(FrameType.input, this.#channel, piece);
  }

  onOutput(data: Buffer, isStderr: boolean): void {
    this.#early = null;
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
    this.#early = null;
    this.#inputCredit += bytes;
    this.#releaseInput();
  }

  onExit(payload: Buffer): void {
    if (this.#mayStartLater(payload)) {
      this.#startLater();
      return;
    }
    this.#finish();
    try {
      if (this.#failure) this.#reject(this.#failure.error);
      this.#resolve(parseExit(payload));
    } catch (error) {
      this.#reject(error);
      throw error;
    }
  }

  onGone(error: BrigError): void {
    this.#finish();
    this.#reject(error);
  }

  #mayStartLater(payload: Buffer): boolean {
    return (
      isWithoutProcess(payload) &&
      !this.#isKilled &&
      this.#early !== null &&
      this.#attempts < RETRY_AFTER_MS.length
    );
  }

  /** What earlier commands left behind has taken every process there may be: it goes, and this one gets its turn. */
  #startLater(): void {
    if (this.#attempts === 0) this.#link.endLeftovers();
    const timer = setTimeout(() => {
      if (this.#isOver) return;
      try {
        this.#channel = this.#link.openChannel(this.#request, this);
        for (const piece of this.#early ?? []) this.#link.send(FrameType.input, this.#channel, piece);
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

  /** A caller's own listener failed: the command ends, and the error is the caller's. */
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
    this.#watchdog?.cancel();
    this.#releaseInput();
  }

  #watch(afterMs: number): void {
    this.#watchdog?.cancel();
    this.#watchdog = afterLivedTime(afterMs, () => void this.#judge());
  }

  /**
   * Only a runner that answers has failed to end a tree. Nothing may have come because this process stood still, the container is
   * paused or the stream is dead: then the answer is waited for as long as the link waits.
   */
  async #judge(): Promise<void> {
    const watchdog = this.#watchdog;
    await this.#link.ping().catch(() => undefined);
    if (this.#isOver || this.#watchdog !== watchdog) return;
    this.#watchdog = afterLivedTime(LAST_WORDS_MS, () => this.#events.onStuck());
  }
}
