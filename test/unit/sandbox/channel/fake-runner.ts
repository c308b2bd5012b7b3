import { Duplex } from "node:stream";
import { isCounted } from "../../../../src/sandbox/channel/frames.js";
import { FrameType, HEADER_BYTES } from "../../../../src/sandbox/channel/protocol.js";
import type { ExecStream } from "../../../../src/sandbox/docker/engine-types.js";

/** A frame as the host sent it. */
export interface SentFrame {
  type: number;
  channel: number;
  payload: Buffer;
}

/** One end of an in-memory connection; what is written to it comes out of its peer. */
class ConnectionEnd extends Duplex {
  peer: ConnectionEnd | undefined;

  override _read(): void {
    // The peer pushes.
  }

  override _write(chunk: Buffer, _encoding: string, callback: () => void): void {
    // As from a socket: the bytes are lent, so each reader gets a copy that is spoilt after the event.
    this.peer?.push(Buffer.from(chunk));
    callback();
  }

  override _destroy(error: Error | null, callback: (error: Error | null) => void): void {
    const { peer } = this;
    if (peer && !peer.destroyed) setImmediate(() => peer.destroy());
    callback(error);
  }
}

function connect(): [ConnectionEnd, ConnectionEnd] {
  const ends: [ConnectionEnd, ConnectionEnd] = [new ConnectionEnd(), new ConnectionEnd()];
  [ends[0].peer, ends[1].peer] = [ends[1], ends[0]];
  return ends;
}

/** The header with which the engine sends a piece of a stream: 1 is stdout, 2 is stderr. */
export function multiplexed(stream: number, data: Uint8Array): Buffer {
  const header = Buffer.alloc(8);
  header[0] = stream;
  header.writeUInt32BE(data.length, 4);
  return Buffer.concat([header, data]);
}

export function frame(type: number, channel: number, payload: Uint8Array = Buffer.alloc(0)): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt32LE(payload.length, 0);
  header.writeUInt32LE(type, 4);
  header.writeUInt32LE(channel, 8);
  return Buffer.concat([header, payload]);
}

export function uint64(value: number | bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}

export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

export function welcome({ version = 1, received = 0, bootId = 7 } = {}): Buffer {
  return frame(FrameType.welcome, 0, Buffer.concat([uint32(version), uint64(received), uint64(bootId)]));
}

/** The payload of EXIT for a command that exited. */
export function exitPayload(code: number, kind = 0): Buffer {
  const payload = Buffer.alloc(44);
  payload[0] = kind;
  payload.writeUInt16LE(code, 2);
  return payload;
}

/**
 * The other side of RunnerLink: the real framing over connections in memory, and what a runner does about counting,
 * acknowledging and sending again. What it says beyond that is the test's business, and need not be honest.
 */
export class FakeRunner {
  /** Counted frames from the host, in order, over all connections. */
  readonly frames: SentFrame[] = [];
  readonly pings: SentFrame[] = [];
  /** Payloads of the HELLOs. */
  readonly hellos: Buffer[] = [];
  /** What is sent in answer to each HELLO. Default: an honest WELCOME, and again what the host lacks. */
  answer: (hello: Buffer) => Buffer | null = (hello) => this.#honestAnswer(hello);
  onFrame: (sent: SentFrame) => void = () => undefined;
  isAcknowledging = true;
  /** It was asked to end everything. */
  wasEnded = false;
  /** The connection there is passes nothing any more, and the next one everything. */
  isSilent = false;
  #isDumb = false;
  connections = 0;
  #connection: ConnectionEnd | undefined;
  #pending: Buffer = Buffer.alloc(0);
  readonly #kept: Buffer[] = [];
  #acknowledged = 0;

  dial = async (): Promise<ExecStream> => {
    this.connections++;
    this.isSilent = false;
    const [host, own] = connect();
    this.#connection = own;
    this.#pending = Buffer.alloc(0);
    own.on("data", (chunk: Buffer) => this.#receive(own, chunk));
    own.on("error", () => undefined);
    return {
      id: `exec-${this.connections}`,
      stream: host,
      inspect: async () => ({ running: true, exitCode: null }),
    };
  };

  get isConnected(): boolean {
    return this.#connection !== undefined && !this.#connection.destroyed;
  }

  /** Sends bytes on stdout as they are, past all counting. */
  sendRaw(bytes: Uint8Array, stream = 1): void {
    if (!this.isSilent) this.#connection?.write(multiplexed(stream, bytes));
  }

  /** Passes on what the engine sends, multiplexing and all, as it is. */
  passOn(bytes: Uint8Array): void {
    this.#connection?.write(bytes);
  }

  /** Sends a frame, and again after a break if it counts and was not acknowledged. */
  send(type: number, channel: number, payload?: Uint8Array): void {
    const bytes = frame(type, channel, payload);
    if (isCounted(type)) this.#kept.push(bytes);
    this.sendRaw(bytes);
  }

  exit(channel: number, code = 0): void {
    this.send(FrameType.exit, channel, exitPayload(code));
  }

  /** From now on it answers nothing by itself. */
  dumb(): void {
    this.#isDumb = true;
  }

  /** Cuts the connection from this side. */
  cut(): void {
    this.#connection?.destroy();
  }

  #honestAnswer(hello: Buffer): Buffer {
    const received = Number(hello.readBigUInt64LE(36));
    this.#kept.splice(0, received - this.#acknowledged);
    this.#acknowledged = received;
    return Buffer.concat([welcome({ received: this.frames.length }), ...this.#kept]);
  }

  #receive(connection: ConnectionEnd, chunk: Buffer): void {
    if (connection !== this.#connection || this.isSilent) return;
    this.#pending = Buffer.concat([this.#pending, chunk]);
    while (this.#pending.length >= HEADER_BYTES) {
      const end = HEADER_BYTES + this.#pending.readUInt32LE(0);
      if (this.#pending.length < end) return;
      const sent = {
        type: this.#pending.readUInt32LE(4),
        channel: this.#pending.readUInt32LE(8),
        payload: this.#pending.subarray(HEADER_BYTES, end),
      };
      this.#pending = this.#pending.subarray(end);
      this.#take(sent);
    }
  }

  #take(sent: SentFrame): void {
    if (this.#isDumb) return;
    if (sent.type === FrameType.hello) {
      this.hellos.push(sent.payload);
      const answer = this.answer(sent.payload);
      if (answer) this.sendRaw(answer);
    } else if (sent.type === FrameType.ack) {
      const upTo = Number(sent.payload.readBigUInt64LE(0));
      this.#kept.splice(0, upTo - this.#acknowledged);
      this.#acknowledged = upTo;
    } else if (sent.type === FrameType.ping) {
      this.pings.push(sent);
      this.send(FrameType.pong, 0, sent.payload);
    } else if (sent.type === FrameType.end) {
      this.wasEnded = true;
    } else {
      this.frames.push(sent);
      if (this.isAcknowledging && this.frames.length % 4 === 0)
        this.send(FrameType.ackFromRunner, 0, uint64(this.frames.length));
      this.onFrame(sent);
    }
  }
}
