import { setTimeout as sleep } from "node:timers/promises";
import type { EngineStream } from "../../docker/engine-types.js";
import { BrigError, isBrigError } from "../../errors.js";
import { afterLivedTime, type LivedTimer } from "../../lib/time/lived-time.js";
import { encodeFrame, type Frame, isCounted, protocolError } from "./frames.js";
import { ACK_EVERY_BYTES, ACK_EVERY_FRAMES, FrameType, MAX_PAYLOAD_TO_RUNNER } from "./protocol.js";
import { greet, type RunnerStream, type StreamEvents, type Welcome } from "./runner-stream.js";

/** What a channel's owner is told. */
export interface ChannelEvents {
  onOutput(data: Buffer, isStderr: boolean): void;
  /** Bytes of input the runner takes in addition. */
  onCredit(bytes: number): void;
  /** The last event of the channel. */
  onExit(payload: Buffer): void;
  /** Instead of `onExit`: the sandbox is gone. */
  onGone(error: BrigError): void;
}

export interface LinkOptions {
  token: Buffer;
  /** A stream attached to the container before its start. If it breaks before the runner answers, `dial` is used. Default: none. */
  first?: EngineStream | undefined;
  /** Opens a new exec of `runner connect`. */
  dial(): Promise<EngineStream>;
  /** What the engine says of the container: that it runs, that it is paused, or why there is nobody to dial any more. */
  diagnose(brokenForMs: number): Promise<"runs" | "paused" | BrigError>;
  /** For how long a broken stream is tried to be opened again. */
  reconnectForMs: number;
  /** Output of a process that outlived the call on this channel. */
  onLate(channel: number, data: Buffer): void;
}

const FIRST_RETRY_MS = 20;
const LAST_RETRY_MS = 1000;
/** How long nothing may come for somebody who waits before the runner is asked, and then the engine. */
const SILENCE_MS = 2000;
/** For how long at least a stream that was given up is tried to be opened again: it may only have been slow, and so the runner. */
const SLOW_RUNNER_MS = 5 * 60_000;

/**
 * The session's one stream to the runner: numbers channels, keeps what the runner has not acknowledged, and opens the
 * stream again when it breaks, so that nothing is lost and nothing happens twice.
 */
export class RunnerLink {
  readonly #options: LinkOptions;
  readonly #channels = new Map<number, ChannelEvents>();
  readonly #pings = new Map<string, () => void>();
  readonly #kept: Buffer[] = [];
  #acknowledged = 0n;
  #received = 0n;
  #untoldFrames = 0;
  #untoldBytes = 0;
  #lastChannel = 0;
  #pingCount = 0;
  #bootId: bigint | undefined;
  #stream: RunnerStream | undefined;
  #silenceTimer: NodeJS.Timeout | undefined;
  #silentTurns = 0;
  #gone: BrigError | undefined;
  #retired: { error: BrigError; upTo: number } | undefined;
  #onGone: ((error: BrigError) => void) | undefined;

  private constructor(options: LinkOptions) {
    this.#options = options;
  }

  /** Errors: `engine.failed` when the runner does not answer, `protocol.invalid` when something else does. */
  static async open(options: LinkOptions): Promise<RunnerLink> {
    const link = new RunnerLink(options);
    await link.#connectFirst().catch((error: unknown) => {
      throw isBrigError(error) ? error : notConnected(error);
    });
    link.#silenceTimer = setInterval(() => void link.#checkSilence(), SILENCE_MS).unref();
    return link;
  }

  /** Told once, when the sandbox cannot be reached any more. */
  set onGone(listener: (error: BrigError) => void) {
    this.#onGone = listener;
    if (this.#gone) listener(this.#gone);
  }

  /** Ends what the commands that are over have left running. Nothing says when that is done. */
  endLeftovers(): void {
    for (let channel = 1; channel <= this.#lastChannel; channel++)
      if (!this.#channels.has(channel)) this.send(FrameType.kill, channel, Buffer.alloc(4));
  }

  /** Sends a request on a new channel and returns its number. Error: `exec.invalid` when it is too large for a frame. */
  openChannel(
    request: { type: number; payload: Uint8Array; isLast?: boolean },
    events: ChannelEvents,
  ): number {
    if (this.#gone) throw this.#gone;
    if (this.#retired && !request.isLast) throw this.#retired.error;
    const { length } = request.payload;
    if (length > MAX_PAYLOAD_TO_RUNNER)
      throw new BrigError(`a request of ${length} bytes is over the limit of ${MAX_PAYLOAD_TO_RUNNER}`, {
        code: "exec.invalid",
        hint: "pass large data through stdin or a file",
      });
    this.#lastChannel++;
    this.#channels.set(this.#lastChannel, events);
    this.send(request.type, this.#lastChannel, request.payload);
    return this.#lastChannel;
  }

  send(type: number, channel: number, payload: Uint8Array): void {
    if (this.#gone) return;
    const frame = encodeFrame(type, channel, payload);
    if (isCounted(type)) this.#kept.push(frame);
    this.#stream?.write(frame);
  }

  /** One small round trip through the whole stream; rejects when the sandbox is gone. */
  async ping(): Promise<void> {
    if (this.#gone) throw this.#gone;
    this.#pingCount++;
    const id = String(this.#pingCount);
    await new Promise<void>((resolve) => {
      this.#pings.set(id, resolve);
      this.send(FrameType.ping, 0, Buffer.from(id));
    });
    if (this.#gone) throw this.#gone;
  }

  /** Cuts the stream as a fault would; the link opens another. For tests of exactly that. */
  breakStream(): void {
    this.#stream?.destroy(new Error("cut on purpose"));
  }

  /** How many channels were opened so far. */
  get channelCount(): number {
    return this.#lastChannel;
  }

  /** Every open channel hears `error`, as all later ones do but those that are marked as last. The stream stays open for these. */
  retire(error: BrigError): void {
    if (this.#gone || this.#retired) return;
    this.#retired = { error, upTo: this.#lastChannel };
    const channels = [...this.#channels.values()];
    this.#channels.clear();
    for (const channel of channels) channel.onGone(error);
  }

  /** As `close`, after it has asked the runner to end everything. False when there was no stream to ask through. */
  end(error: BrigError): boolean {
    if (this.#gone || this.#stream === undefined) {
      this.close(error);
      return false;
    }
    this.#stream.write(encodeFrame(FrameType.end, 0, Buffer.alloc(0)));
    this.#stream.flush();
    this.close(error);
    return true;
  }

  /** Ends the link; every open channel hears `error`. */
  close(error: BrigError): void {
    if (this.#gone) return;
    this.#gone = error;
    clearInterval(this.#silenceTimer);
    this.#stream?.destroy(error);
    const channels = [...this.#channels.values()];
    this.#channels.clear();
    this.#kept.length = 0;
    for (const channel of channels) channel.onGone(error);
    for (const resolve of this.#pings.values()) resolve();
    this.#pings.clear();
    this.#onGone?.(error);
  }

  async #connectFirst(): Promise<void> {
    const { first } = this.#options;
    if (first === undefined || first.stream.destroyed) return await this.#connect();
    try {
      await this.#greet(first);
    } catch (error) {
      if (isBrigError(error)) throw error;
      await this.#connect();
    }
  }

  async #connect(): Promise<void> {
    await this.#greet(await this.#options.dial());
  }

  async #greet(stream: EngineStream): Promise<void> {
    await greet(stream, { token: this.#options.token, received: this.#received }, (welcome, stream) =>
      this.#resume(welcome, stream),
    );
  }

  #resume(welcome: Welcome, stream: RunnerStream): StreamEvents {
    if (this.#gone) throw this.#gone;
    if (this.#bootId !== undefined && this.#bootId !== welcome.bootId)
      throw protocolError("another runner answered");
    this.#bootId = welcome.bootId;
    this.#acknowledge(welcome.received);
    this.#stream = stream;
    this.#untoldFrames = 0;
    this.#untoldBytes = 0;
    this.#silentTurns = 0;
    for (const frame of this.#kept) stream.write(frame);
    for (const id of this.#pings.keys()) stream.write(encodeFrame(FrameType.ping, 0, Buffer.from(id)));
    return {
      onFrame: (frame) => this.#take(frame),
      onEnd: (reason) => {
        if (this.#stream !== stream) return;
        this.#stream = undefined;
        if (!this.#gone) void this.#reconnect(reason);
      },
    };
  }

  async #reconnect(reason: Error): Promise<void> {
    const { reconnectForMs } = this.#options;
    const isSlow = reason instanceof SilentStream;
    const patience = new Patience(isSlow ? Math.max(reconnectForMs, SLOW_RUNNER_MS) : reconnectForMs);
    try {
      await this.#dialUntil(patience, reason);
    } finally {
      patience.end();
    }
  }

  async #dialUntil(patience: Patience, reason: Error): Promise<void> {
    const brokenAt = performance.now();
    let lastReason: unknown = reason;
    let wasPaused = false;
    for (let waitMs = FIRST_RETRY_MS; !this.#gone; waitMs = Math.min(waitMs * 2, LAST_RETRY_MS)) {
      if (isBrigError(lastReason, "protocol.invalid")) return this.close(lastReason);
      const found = await this.#options
        .diagnose(performance.now() - brokenAt)
        .catch((error: unknown) => unreachable(error));
      if (wasPaused) patience.renew();
      wasPaused = found === "paused";
      if (isBrigError(found) && (found.reason !== "engine" || patience.isOver)) return this.close(found);
      if (patience.isOver && !wasPaused) return this.close(cannotReopen(lastReason));
      try {
        if (found === "runs") return await this.#connect();
      } catch (error) {
        lastReason = error;
      }
      await sleep(waitMs);
    }
  }

  /**
   * A stream can be dead though nobody has closed it: something in between has lost it, or the runtime leaves that of a container
   * that has ended open. The engine tells the one from the other.
   */
  async #checkSilence(): Promise<void> {
    const stream = this.#stream;
    if (this.#channels.size + this.#pings.size === 0 || !stream) {
      this.#silentTurns = 0;
      return;
    }
    this.#silentTurns++;
    if (this.#silentTurns === 2) this.send(FrameType.ping, 0, Buffer.from("silence"));
    if (this.#silentTurns < 3) return;
    const found = await this.#options.diagnose(0).catch(() => null);
    const isStillSilent = this.#silentTurns > 0 && this.#stream === stream;
    if (!isStillSilent || found === null || found === "paused") return;
    // A machine that is only slow loses nothing by it: the runner sends again what has not arrived.
    if (found === "runs") stream.destroy(new SilentStream());
    else this.close(found);
  }

  #take(frame: Frame): void {
    if (this.#gone) return;
    this.#silentTurns = 0;
    if (isCounted(frame.type)) this.#count(frame);
    switch (frame.type) {
      case FrameType.ackFromRunner:
        if (frame.payload.length !== 8) throw protocolError("an ACK of the wrong size");
        this.#acknowledge(frame.payload.readBigUInt64LE(0));
        return;
      case FrameType.pong: {
        const id = frame.payload.toString("latin1");
        this.#pings.get(id)?.();
        this.#pings.delete(id);
        return;
      }
      case FrameType.welcome:
        throw protocolError("a second WELCOME");
      case FrameType.late:
        this.#takeLate(frame);
        return;
      default:
        this.#dispatch(frame);
    }
  }

  #takeLate(frame: Frame): void {
    if (frame.channel > this.#lastChannel) throw protocolError(`output of unknown channel ${frame.channel}`);
    this.#options.onLate(frame.channel, frame.payload);
  }

  #dispatch(frame: Frame): void {
    const channel = this.#channels.get(frame.channel);
    if (!channel) {
      // Credit for input can cross the EXIT of its channel.
      const isHarmless = frame.type === FrameType.creditFromRunner && frame.channel <= this.#lastChannel;
      if (isHarmless || frame.channel <= (this.#retired?.upTo ?? 0)) return;
      throw protocolError(`a frame for unknown channel ${frame.channel}`);
    }
    switch (frame.type) {
      case FrameType.creditFromRunner:
        if (frame.payload.length !== 4) throw protocolError("a CREDIT of the wrong size");
        channel.onCredit(frame.payload.readUInt32LE(0));
        return;
      case FrameType.exit:
        this.#channels.delete(frame.channel);
        channel.onExit(frame.payload);
        return;
      default:
        channel.onOutput(frame.payload, frame.type === FrameType.stderr);
    }
  }

  #count(frame: Frame): void {
    this.#received++;
    this.#untoldFrames++;
    this.#untoldBytes += frame.payload.length;
    if (this.#untoldFrames < ACK_EVERY_FRAMES && this.#untoldBytes < ACK_EVERY_BYTES) return;
    this.#untoldFrames = 0;
    this.#untoldBytes = 0;
    const payload = Buffer.alloc(8);
    payload.writeBigUInt64LE(this.#received);
    this.send(FrameType.ack, 0, payload);
  }

  #acknowledge(frames: bigint): void {
    const count = frames - this.#acknowledged;
    if (count < 0n || count > BigInt(this.#kept.length)) throw protocolError(`an ACK of ${frames} frames`);
    this.#kept.splice(0, Number(count));
    this.#acknowledged = frames;
  }
}

/** Nobody has closed it, but nothing comes any more. */
class SilentStream extends Error {
  constructor() {
    super("nothing came from the runner any more");
  }
}

/** How long a broken stream is tried to be opened again, in time that this process had for it. */
class Patience {
  readonly #ms: number;
  #timer: LivedTimer | undefined;
  #isOver = false;

  constructor(ms: number) {
    this.#ms = ms;
    this.renew();
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  renew(): void {
    this.end();
    this.#isOver = false;
    this.#timer = afterLivedTime(this.#ms, () => {
      this.#isOver = true;
    });
  }

  end(): void {
    this.#timer?.cancel();
  }
}

function notConnected(cause: unknown): BrigError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new BrigError(`the sandbox was started, but its runner cannot be reached: ${reason}`, {
    code: "engine.failed",
    hint: "`brig doctor` may say what is wrong with the engine",
    cause,
  });
}

function unreachable(cause: unknown): BrigError {
  return new BrigError("the container engine stopped answering while the sandbox was in use", {
    code: "sandbox.gone",
    reason: "engine",
    hint: "check the engine with `brig doctor`; the sandbox's processes end with its container",
    cause,
  });
}

function cannotReopen(cause: unknown): BrigError {
  return new BrigError("the stream to the sandbox broke and could not be opened again", {
    code: "sandbox.gone",
    reason: "engine",
    hint: "check the engine with `brig doctor`",
    cause,
  });
}
