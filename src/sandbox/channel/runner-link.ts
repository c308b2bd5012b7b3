import { BrigError, isBrigError } from "../../errors.js";
import type { EngineStream } from "../docker/engine-types.js";
import type { ChannelEvents } from "./channel-events.js";
import { encodeFrame, type Frame, FrameCounts, isCounted, protocolError } from "./frames.js";
import type { LinkJournal, RecoveredJournal } from "./link-journal.js";
import { FrameType, MAX_PAYLOAD_TO_RUNNER } from "./protocol.js";
import { dialInTime, reopenStream, SilentStream } from "./reopen-stream.js";
import { greet, type RunnerStream, type StreamEvents, type Welcome } from "./runner-stream.js";

export interface LinkOptions {
  token: Buffer;
  /** A stream attached before the container's start; `dial` replaces it if it breaks. Default: none. */
  first?: EngineStream | undefined;
  dial(): Promise<EngineStream>;
  /** Asks the engine: the container runs, is paused, or has ended for the returned reason. */
  diagnose(brokenForMs: number, how: { wasRefused: boolean }): Promise<"runs" | "paused" | BrigError>;
  reconnectForMs: number;
  /** Called with output of a process that outlived the call on this channel. */
  onLate(channel: number, data: Buffer): void;
  /** Where frames are noted, so that another process can go on with them. Default: nowhere. */
  journal?: LinkJournal | undefined;
}

/** How a link goes on where that of another process stopped. */
interface Resumption {
  recovered: RecoveredJournal;
  /** Called before anything arrives. It adopts the channels that are still of use; the others are ended. */
  adopt(link: RunnerLink): void;
}

/** If nothing arrives while a call waits, asks the runner after 2 intervals, and the engine after 3. */
const SILENCE_MS = 2000;
/** With fewer channels, each frame is sent at once. */
const MANY_CHANNELS = 16;

/**
 * The session's one stream to the runner: numbers channels, keeps what the runner has not acknowledged, and
 * opens the stream again when it breaks, so that nothing is lost and nothing happens twice.
 */
export class RunnerLink {
  readonly #options: LinkOptions;
  readonly #channels = new Map<number, ChannelEvents>();
  readonly #pings = new Map<string, () => void>();
  readonly #counts: FrameCounts;
  readonly #journal: LinkJournal | undefined;
  #lastChannel = 0;
  #pingCount = 0;
  #bootId: bigint | undefined;
  #stream: RunnerStream | undefined;
  #silenceTimer: NodeJS.Timeout | undefined;
  #silentTurns = 0;
  #gone: BrigError | undefined;
  #retired: { error: BrigError; upTo: number } | undefined;
  #onGone: ((error: BrigError) => void) | undefined;
  /** Called before each command; may end the link. */
  beforeCommand: (() => void) | undefined;

  private constructor(options: LinkOptions, state?: RecoveredJournal["state"]) {
    this.#options = options;
    this.#counts = new FrameCounts(state);
    this.#bootId = state?.bootId;
    this.#lastChannel = state?.lastChannel ?? 0;
    this.#journal = options.journal;
    if (this.#journal)
      this.#journal.takeState = () => ({
        ...this.#counts.counted,
        bootId: this.#bootId ?? 0n,
        lastChannel: this.#lastChannel,
      });
  }

  /** Errors: `engine.failed` when the runner does not answer, `protocol.invalid` when something else does. */
  static async open(options: LinkOptions): Promise<RunnerLink> {
    const link = new RunnerLink(options);
    await link.#connectFirst().catch((error: unknown) => {
      throw isBrigError(error) ? error : notConnected(error);
    });
    link.#journal?.begin();
    link.#watchSilence();
    return link;
  }

  /** Goes on with a runner that another process has spoken with. Errors: those of `open`; `sandbox.gone`. */
  static async resume(options: LinkOptions, { recovered, adopt }: Resumption): Promise<RunnerLink> {
    const { state } = recovered;
    const link = new RunnerLink(options, state);
    link.#journal?.begin();
    const unfinished = [...state.open.keys()];
    adopt(link);
    for (const channel of unfinished) link.#endUnadopted(channel);
    try {
      await link.#connect();
    } catch (cause) {
      const error = isBrigError(cause) ? cause : notConnected(cause);
      link.close(error);
      throw error;
    }
    link.#watchSilence();
    return link;
  }

  /** Takes over the channel of a request that another process has sent. */
  adoptChannel(channel: number, events: ChannelEvents): void {
    this.#channels.set(channel, events);
  }

  /** Nobody waits for its answer any more. */
  #endUnadopted(channel: number): void {
    if (this.#channels.has(channel)) return;
    const ignore = () => undefined;
    this.#channels.set(channel, {
      onOutput: ignore,
      onCredit: ignore,
      onSocketFrame: ignore,
      onExit: ignore,
      onGone: ignore,
    });
    this.send(FrameType.kill, channel, Buffer.alloc(4));
  }

  #watchSilence(): void {
    this.#silenceTimer = setInterval(() => void this.#checkSilence(), SILENCE_MS).unref();
  }

  /** Called once, when the sandbox cannot be reached any more. */
  set onGone(listener: (error: BrigError) => void) {
    this.#onGone = listener;
    if (this.#gone) listener(this.#gone);
  }

  /** Asks the runner to kill the processes that finished commands left behind. Does not wait for it. */
  endLeftovers(): void {
    for (let channel = 1; channel <= this.#lastChannel; channel++)
      if (!this.#channels.has(channel)) this.send(FrameType.kill, channel, Buffer.alloc(4));
  }

  /** Sends a request on a new channel, and returns its number. Error: `exec.invalid` if it is too large. */
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
    if (isCounted(type)) {
      this.#journal?.sent(frame);
      this.#counts.keep(frame);
    }
    this.#stream?.write(frame, { mayWait: this.#channels.size >= MANY_CHANNELS });
  }

  /** One small round trip to the runner. Rejects when the sandbox is gone. */
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

  /** For tests: breaks the stream as a fault would, so that the link has to open another. */
  breakStream(): void {
    this.#stream?.destroy(new Error("cut on purpose"));
  }

  /** No further channel can be opened. */
  get isOver(): boolean {
    return this.#gone !== undefined || this.#retired !== undefined;
  }

  /** The number of channels that have been opened so far. */
  get channelCount(): number {
    return this.#lastChannel;
  }

  /** The number of open channels and of round trips under way. */
  get pendingCount(): number {
    return this.#channels.size + this.#pings.size;
  }

  /** Ends every open channel with `error`. Later only requests marked `isLast` are accepted. */
  retire(error: BrigError): void {
    if (this.#gone || this.#retired) return;
    this.#retired = { error, upTo: this.#lastChannel };
    this.#endChannels(error);
  }

  /** Asks the runner to end everything, and closes. Returns false if there was no stream to ask through. */
  end(error: BrigError): boolean {
    const stream = this.#gone ? undefined : this.#stream;
    stream?.write(encodeFrame(FrameType.end, 0, Buffer.alloc(0)));
    stream?.flush();
    this.close(error);
    return stream !== undefined;
  }

  /** Ends the link, and every open channel with `error`. */
  close(error: BrigError): void {
    if (this.#gone) return;
    this.#gone = error;
    clearInterval(this.#silenceTimer);
    this.#stream?.destroy(error);
    this.#counts.forget();
    this.#journal?.close();
    this.#endChannels(error);
    for (const resolve of this.#pings.values()) resolve();
    this.#pings.clear();
    this.#onGone?.(error);
  }

  #endChannels(error: BrigError): void {
    const channels = [...this.#channels.values()];
    this.#channels.clear();
    for (const channel of channels) channel.onGone(error);
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
    await this.#greet(await dialInTime(this.#options.dial));
  }

  async #greet(stream: EngineStream): Promise<void> {
    await greet(stream, { token: this.#options.token, received: this.#counts.received }, (welcome, stream) =>
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
    this.#silentTurns = 0;
    for (const frame of this.#counts.resume()) stream.write(frame);
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

  #acknowledge(frames: bigint): void {
    this.#counts.acknowledge(frames);
    this.#journal?.acknowledged(frames);
  }

  async #reconnect(reason: Error): Promise<void> {
    let wasRefused = false;
    const failure = await reopenStream(reason, {
      tryForMs: this.#options.reconnectForMs,
      connect: async () => {
        wasRefused = true;
        await this.#connect();
        wasRefused = false;
      },
      diagnose: (brokenForMs) => this.#options.diagnose(brokenForMs, { wasRefused }),
      isGivenUp: () => this.#gone !== undefined,
    });
    // The runner of a container that was started again is another one, which is not to blame.
    const isOther = failure?.code === "protocol.invalid" && wasRefused;
    const found = isOther ? await this.#options.diagnose(0, { wasRefused: true }).catch(() => null) : null;
    if (failure !== null) this.close(isBrigError(found) && found.reason === "restarted" ? found : failure);
  }

  /**
   * A stream can be dead but open: the connection is lost, or the runtime did not close it when the container
   * ended. The engine tells which.
   */
  async #checkSilence(): Promise<void> {
    const stream = this.#stream;
    if (this.pendingCount === 0 || !stream) {
      this.#silentTurns = 0;
      return;
    }
    this.#silentTurns++;
    if (this.#silentTurns === 2) this.send(FrameType.ping, 0, Buffer.from("silence"));
    if (this.#silentTurns < 3) return;
    const found = await this.#options.diagnose(0, { wasRefused: false }).catch(() => null);
    const isStillSilent = this.#silentTurns > 0 && this.#stream === stream;
    if (!isStillSilent || found === null || found === "paused") return;
    // If the machine is only slow, nothing is lost: the runner sends again what has not arrived.
    if (found === "runs") stream.destroy(new SilentStream());
    else this.close(found);
  }

  #take(frame: Frame): void {
    if (this.#gone) return;
    this.#silentTurns = 0;
    if (isCounted(frame.type)) this.#journal?.received(frame);
    const acknowledgement = isCounted(frame.type) ? this.#counts.receive(frame) : null;
    if (acknowledgement !== null) this.send(FrameType.ack, 0, acknowledgement);
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
        if (frame.channel > this.#lastChannel)
          throw protocolError(`output of unknown channel ${frame.channel}`);
        this.#options.onLate(frame.channel, frame.payload);
        return;
      default:
        this.#dispatch(frame);
    }
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
      case FrameType.stdout:
      case FrameType.stderr:
        channel.onOutput(frame.payload, frame.type === FrameType.stderr);
        return;
      default:
        if (channel.onSocketFrame === undefined) throw protocolError("a socket's frame on another channel");
        channel.onSocketFrame(frame);
    }
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
