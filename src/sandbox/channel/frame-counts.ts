import { type Frame, protocolError } from "./frames.js";
import { ACK_EVERY_BYTES, ACK_EVERY_FRAMES } from "./protocol.js";

/** Counts frames in both directions, and keeps those to send again if the stream breaks. */
export class FrameCounts {
  readonly #kept: Buffer[] = [];
  #acknowledged = 0n;
  #received = 0n;
  #unacknowledgedFrames = 0;
  #unacknowledgedBytes = 0;

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
