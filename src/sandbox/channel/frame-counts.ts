import { type Frame, protocolError } from "./frames.js";
import { ACK_EVERY_BYTES, ACK_EVERY_FRAMES } from "./protocol.js";

/** How many frames each side has of the other, and what the runner has not acknowledged: it is sent again after a break. */
export class FrameCounts {
  readonly #kept: Buffer[] = [];
  #acknowledged = 0n;
  #received = 0n;
  #untoldFrames = 0;
  #untoldBytes = 0;

  /** Of the runner's frames. */
  get received(): bigint {
    return this.#received;
  }

  keep(frame: Buffer): void {
    this.#kept.push(frame);
  }

  forget(): void {
    this.#kept.length = 0;
  }

  /** What goes first into a new stream. The runner was told what has arrived when that was opened. */
  resume(): readonly Buffer[] {
    this.#untoldFrames = 0;
    this.#untoldBytes = 0;
    return this.#kept;
  }

  /** Counts a frame of the runner's. Gives the payload of an ACK when it is time to send one, else null. */
  receive(frame: Frame): Buffer | null {
    this.#received++;
    this.#untoldFrames++;
    this.#untoldBytes += frame.payload.length;
    if (this.#untoldFrames < ACK_EVERY_FRAMES && this.#untoldBytes < ACK_EVERY_BYTES) return null;
    this.#untoldFrames = 0;
    this.#untoldBytes = 0;
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
