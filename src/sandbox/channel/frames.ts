import { BrigError } from "../../errors.js";
import {
  ACK_EVERY_BYTES,
  ACK_EVERY_FRAMES,
  FrameType,
  HEADER_BYTES,
  MAX_PAYLOAD_FROM_RUNNER,
} from "./protocol.js";

export interface Frame {
  type: number;
  channel: number;
  /** Valid only until the callback returns; copy it to keep it. */
  payload: Buffer;
}

export function encodeFrame(type: number, channel: number, payload: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(HEADER_BYTES + payload.length);
  frame.writeUInt32LE(payload.length, 0);
  frame.writeUInt32LE(type, 4);
  frame.writeUInt32LE(channel, 8);
  frame.set(payload, HEADER_BYTES);
  return frame;
}

/** Frames of the session itself are not counted, and not sent again after a break. */
export function isCounted(type: number): boolean {
  return (type & 0x7f) > FrameType.end;
}

export function protocolError(what: string, cause?: unknown): BrigError {
  return new BrigError(`the runner broke its protocol: ${what}`, {
    code: "protocol.invalid",
    hint: "something in the sandbox has tampered with its runner; the sandbox was ended",
    cause,
  });
}

/** Splits a byte stream, in pieces of any size, into frames without allocating for each. */
export class FrameParser {
  readonly #partial = Buffer.allocUnsafeSlow(HEADER_BYTES + MAX_PAYLOAD_FROM_RUNNER);
  #filled = 0;

  /** Throws `protocol.invalid` on the first byte that cannot belong to a frame of the runner. */
  push(chunk: Buffer, onFrame: (frame: Frame) => void): void {
    let at = 0;
    while (this.#filled > 0 && at < chunk.length) {
      at += this.#fill(chunk, at, this.#neededBytes());
      if (this.#filled < HEADER_BYTES || this.#filled < this.#neededBytes()) continue;
      const size = this.#filled;
      this.#filled = 0;
      onFrame(frameAt(this.#partial, 0, size));
    }
    while (chunk.length - at >= HEADER_BYTES) {
      const end = at + checkedSizeAt(chunk, at);
      if (end > chunk.length) break;
      onFrame(frameAt(chunk, at, end));
      at = end;
    }
    if (at < chunk.length) this.#fill(chunk, at, chunk.length - at);
  }

  /** The size of the partial frame; that of its header until the header is complete. */
  #neededBytes(): number {
    return this.#filled < HEADER_BYTES ? HEADER_BYTES : checkedSizeAt(this.#partial, 0);
  }

  #fill(chunk: Buffer, at: number, upTo: number): number {
    const end = Math.min(chunk.length, at + Math.max(0, upTo - this.#filled));
    const taken = chunk.copy(this.#partial, this.#filled, at, end);
    this.#filled += taken;
    return taken;
  }
}

function frameAt(data: Buffer, at: number, end: number): Frame {
  return {
    type: data.readUInt32LE(at + 4),
    channel: data.readUInt32LE(at + 8),
    payload: data.subarray(at + HEADER_BYTES, end),
  };
}

function checkedSizeAt(data: Buffer, at: number): number {
  const length = data.readUInt32LE(at);
  checkHeader(length, data.readUInt32LE(at + 4), data.readUInt32LE(at + 8));
  return HEADER_BYTES + length;
}

const fromRunner = new Set<number>([
  FrameType.welcome,
  FrameType.ackFromRunner,
  FrameType.pong,
  FrameType.stdout,
  FrameType.stderr,
  FrameType.exit,
  FrameType.late,
  FrameType.creditFromRunner,
  FrameType.bound,
  FrameType.connected,
  FrameType.datagramFromRunner,
]);

function checkHeader(length: number, type: number, channel: number): void {
  if (length > MAX_PAYLOAD_FROM_RUNNER) throw protocolError(`a frame of ${length} bytes`);
  // The upper bytes are flags and padding, which are zero in this version, so the word is the type itself.
  if (!fromRunner.has(type)) throw protocolError(`frame type 0x${type.toString(16)}`);
  if (isCounted(type) === (channel === 0))
    throw protocolError(`frame type 0x${type.toString(16)} on channel ${channel}`);
}

interface Counted {
  /** How many frames have come from the runner. */
  received: bigint;
  /** How many frames for the runner it has acknowledged, and those after them. */
  acknowledged: bigint;
  kept: readonly Buffer[];
}

/** Counts frames in both directions, and keeps those to send again if the stream breaks. */
export class FrameCounts {
  readonly #kept: Buffer[];
  #acknowledged: bigint;
  #received: bigint;
  #unacknowledgedFrames = 0;
  #unacknowledgedBytes = 0;

  /** Goes on from what another one has counted. Default: nothing yet. */
  constructor({ received, acknowledged, kept }: Counted = { received: 0n, acknowledged: 0n, kept: [] }) {
    this.#received = received;
    this.#acknowledged = acknowledged;
    this.#kept = [...kept];
  }

  get counted(): Counted {
    return { received: this.#received, acknowledged: this.#acknowledged, kept: this.#kept };
  }

  get received(): bigint {
    return this.#received;
  }

  keep(frame: Buffer): void {
    this.#kept.push(frame);
  }

  forget(): void {
    this.#kept.length = 0;
  }

  /** The frames to send first on a new stream, whose HELLO has acknowledged all received frames. */
  resume(): readonly Buffer[] {
    this.#unacknowledgedFrames = 0;
    this.#unacknowledgedBytes = 0;
    return this.#kept;
  }

  /** Counts a frame from the runner. Returns the payload of an ACK when one is due, else null. */
  receive(frame: Frame): Buffer | null {
    this.#received++;
    this.#unacknowledgedFrames++;
    this.#unacknowledgedBytes += frame.payload.length;
    if (this.#unacknowledgedFrames < ACK_EVERY_FRAMES && this.#unacknowledgedBytes < ACK_EVERY_BYTES)
      return null;
    this.#unacknowledgedFrames = 0;
    this.#unacknowledgedBytes = 0;
    const payload = Buffer.alloc(8);
    payload.writeBigUInt64LE(this.#received);
    return payload;
  }

  acknowledge(frames: bigint): void {
    const count = frames - this.#acknowledged;
    if (count < 0n || count > BigInt(this.#kept.length)) throw protocolError(`an ACK of ${frames} frames`);
    this.#kept.splice(0, Number(count));
    this.#acknowledged = frames;
  }
}

const ENGINE_HEADER_BYTES = 8;
const STDOUT = 1;
const STDERR = 2;
/** Only a broken engine announces more. Docker's pieces were at most 32 KiB when measured. */
const MAX_PIECE_BYTES = 16 * 1024 * 1024;

/**
 * Undoes the engine's multiplexing of an exec without a terminal, without buffering: before each piece come 8
 * header bytes (stream, three zeros, big-endian length).
 */
export class Demultiplexer {
  readonly #header = Buffer.alloc(ENGINE_HEADER_BYTES);
  #headerFilled = 0;
  #stream = 0;
  #remaining = 0;

  push(chunk: Buffer, onData: (data: Buffer, isStderr: boolean) => void): void {
    let at = 0;
    while (at < chunk.length) {
      if (this.#remaining === 0) {
        at += this.#takeHeader(chunk, at);
        continue;
      }
      const end = Math.min(chunk.length, at + this.#remaining);
      this.#remaining -= end - at;
      onData(chunk.subarray(at, end), this.#stream === STDERR);
      at = end;
    }
  }

  #takeHeader(chunk: Buffer, at: number): number {
    const taken = chunk.copy(
      this.#header,
      this.#headerFilled,
      at,
      at + ENGINE_HEADER_BYTES - this.#headerFilled,
    );
    this.#headerFilled += taken;
    if (this.#headerFilled < ENGINE_HEADER_BYTES) return taken;
    this.#headerFilled = 0;
    this.#stream = this.#header.readUInt8(0);
    this.#remaining = this.#header.readUInt32BE(4);
    if (this.#stream !== STDOUT && this.#stream !== STDERR)
      throw protocolError(`stream ${this.#stream} in the engine's multiplexing`);
    if (this.#remaining > MAX_PIECE_BYTES)
      throw protocolError(`${this.#remaining} bytes in the engine's multiplexing`);
    return taken;
  }
}
