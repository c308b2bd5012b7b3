import { BrigError } from "../../errors.js";
import { afterLivedTime, type LivedTimer } from "../../lib/time/lived-time.js";
import { YoungGarbage } from "../../lib/young-garbage.js";
import type { EngineStream } from "../docker/engine-types.js";
import { Demultiplexer, encodeFrame, type Frame, FrameParser, protocolError } from "./frames.js";
import { FrameType, HELLO_BYTES, PROTOCOL_VERSION, TOKEN_BYTES, WELCOME_BYTES } from "./protocol.js";

const HELLO_WITHIN_MS = 10_000;
const MAX_BRIDGE_MESSAGE = 4096;

export interface Welcome {
  /** The number of counted frames that the runner has received from the host. */
  received: bigint;
  bootId: bigint;
}

export interface StreamEvents {
  onFrame(frame: Frame): void;
  /** Called once, when the stream has ended for any reason. */
  onEnd(reason: Error): void;
}

/** One stream to the runner, from HELLO to its end. If it breaks, RunnerLink opens another. */
export class RunnerStream {
  readonly #exec: EngineStream;
  readonly #demultiplexer = new Demultiplexer();
  readonly #parser = new FrameParser();
  readonly #garbage = new YoungGarbage();
  readonly #events: StreamEvents;
  #bridgeMessage = "";
  #firstByte: number | undefined;
  #isCorked = false;
  #ended = false;

  constructor(exec: EngineStream, events: StreamEvents) {
    this.#exec = exec;
    this.#events = events;
    exec.stream.on("data", (chunk: Buffer) => this.#take(chunk));
    exec.stream.on("error", (error: Error) => this.#end(error));
    exec.stream.on("close", () => this.#end(this.#closeReason()));
    exec.stream.on("end", () => this.#end(this.#closeReason()));
  }

  /**
   * Sends all frames that are written together in one system call: each wakes the engine and its shim. With `mayWait` these are the frames of one
   * turn of the event loop: a tenth more calls a second, where many are under way.
   */
  write(frame: Buffer, { mayWait = false } = {}): void {
    if (this.#ended) return;
    if (!this.#isCorked) {
      this.#isCorked = true;
      this.#exec.stream.cork();
      if (mayWait) setImmediate(() => this.flush());
      else process.nextTick(() => this.flush());
    }
    this.#exec.stream.write(frame);
    this.#garbage.add(frame.length);
  }

  /** Sends the frames written so far at once, so that they are not lost when the stream is destroyed next. */
  flush(): void {
    if (!this.#isCorked) return;
    this.#isCorked = false;
    this.#exec.stream.uncork();
  }

  destroy(reason?: Error): void {
    this.flush();
    this.#end(reason ?? new Error("closed by the host"));
  }

  #take(chunk: Buffer): void {
    if (this.#ended) return;
    try {
      this.#demultiplexer.push(chunk, (data, isStderr) => {
        if (isStderr || this.#isEngineMessage(data)) this.#addBridgeMessage(data);
        else this.#parser.push(data, (frame) => this.#events.onFrame(frame));
      });
      this.#garbage.add(chunk.length);
    } catch (error) {
      this.#end(error instanceof BrigError ? error : protocolError("its frames could not be handled", error));
    }
  }

  /**
   * The engine may write an error message in place of the bridge's frames, if the container is ending. Frames
   * begin with WELCOME's length, which is not printable.
   */
  #isEngineMessage(data: Buffer): boolean {
    this.#firstByte ??= data[0];
    return this.#firstByte !== undefined && this.#firstByte >= 0x20 && this.#firstByte < 0x7f;
  }

  #addBridgeMessage(data: Buffer): void {
    if (this.#bridgeMessage.length < MAX_BRIDGE_MESSAGE) this.#bridgeMessage += data.toString("latin1");
  }

  #closeReason(): Error {
    const message = this.#bridgeMessage.replace(/[^\x20-\x7e]+/g, " ").trim();
    return new Error(message === "" ? "the stream to the runner ended" : message);
  }

  #end(reason: Error): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#exec.stream.destroy();
    this.#events.onEnd(reason);
  }
}

/** Sends HELLO and waits for WELCOME. Frames that follow WELCOME go to what `events` returns. */
export async function greet(
  exec: EngineStream,
  identity: { token: Buffer; received: bigint },
  events: (welcome: Welcome, stream: RunnerStream) => StreamEvents,
): Promise<void> {
  let timer: LivedTimer | undefined;
  try {
    await new Promise<void>((resolve, reject) => {
      let accepted: StreamEvents | undefined;
      const stream = new RunnerStream(exec, {
        onFrame(frame) {
          if (accepted) return accepted.onFrame(frame);
          accepted = events(parseWelcome(frame), stream);
          resolve();
        },
        onEnd(reason) {
          if (accepted) accepted.onEnd(reason);
          else reject(reason);
        },
      });
      const giveUp = () => stream.destroy(new Error("the runner did not answer"));
      timer = afterLivedTime(HELLO_WITHIN_MS, giveUp);
      stream.write(encodeHello(identity));
    });
  } finally {
    timer?.cancel();
  }
}

function encodeHello({ token, received }: { token: Buffer; received: bigint }): Buffer {
  const payload = Buffer.alloc(HELLO_BYTES);
  payload.writeUInt32LE(PROTOCOL_VERSION, 0);
  token.copy(payload, 4, 0, TOKEN_BYTES);
  payload.writeBigUInt64LE(received, 4 + TOKEN_BYTES);
  return encodeFrame(FrameType.hello, 0, payload);
}

function parseWelcome(frame: Frame): Welcome {
  if (frame.type !== FrameType.welcome || frame.payload.length !== WELCOME_BYTES)
    throw protocolError("no WELCOME after HELLO");
  const version = frame.payload.readUInt32LE(0);
  if (version !== PROTOCOL_VERSION)
    throw new BrigError(`the runner speaks protocol ${version}, this brig speaks ${PROTOCOL_VERSION}`, {
      code: "protocol.invalid",
      hint: "run `brig image build` to build the matching toolbox",
    });
  return { received: frame.payload.readBigUInt64LE(4), bootId: frame.payload.readBigUInt64LE(12) };
}
