/** The name of the protocol in the header `Upgrade`. */
export const EXEC_PROTOCOL = "brig-exec";

/** What each frame of a connection is. Those below 16 go to the owner, the others to its client. */
export const FRAME = {
  /** JSON: the command. Always the first. */
  start: 0,
  input: 1,
  inputEnd: 2,
  /** JSON: the rows and columns of the terminal. */
  resize: 3,
  /** The name of a signal, such as SIGINT; nothing ends the command with everything that it has started. */
  signal: 4,
  /** JSON, in place of the command: which one the client had a connection for, whose owner was killed. */
  resume: 5,
  stdout: 17,
  stderr: 18,
  /** JSON: how the command has ended. The last frame. */
  ended: 19,
  /** JSON: why there is no command, or none any more. The last frame. */
  error: 20,
  /**
   * Four bytes: how many bytes of input the command has taken since the last such frame. Of a command that others give input to as well, eight
   * more: how many that are in all.
   */
  taken: 21,
  /** JSON: where a command is that was there before the connection. */
  begun: 22,
  /** JSON, between the last output and the end: how much is stored of what the command has changed. */
  copied: 23,
} as const;

/** How much input may be on its way that the command has not taken. More would fill the owner's memory. */
export const INPUT_WINDOW_BYTES = 1024 * 1024;

export const HEAD_BYTES = 5;
/** Of what the owner takes. The largest frame is the first one, with the variables of the command. */
const MAX_PAYLOAD_BYTES = 16 * 1024 * 1024;
/** Of what a client takes: the whole output of a command, in which each byte may be written as six. */
export const MAX_KEPT_PAYLOAD_BYTES = 256 * 1024 * 1024;

export interface Frame {
  type: number;
  payload: Buffer;
}

export function encodeFrame(type: number, payload: Uint8Array | string = ""): Buffer {
  const bytes = typeof payload === "string" ? Buffer.from(payload) : payload;
  const frame = Buffer.allocUnsafe(HEAD_BYTES + bytes.length);
  frame.writeUInt8(type, 0);
  frame.writeUInt32BE(bytes.length, 1);
  frame.set(bytes, HEAD_BYTES);
  return frame;
}

/** Cuts what arrives into frames. */
export class FrameReader {
  readonly #maxBytes: number;
  #rest: Buffer = Buffer.alloc(0);

  constructor(maxBytes: number = MAX_PAYLOAD_BYTES) {
    this.#maxBytes = maxBytes;
  }

  /** The frames that are complete now. Null for what is no frame: nothing after it can be read. */
  push(chunk: Buffer): Frame[] | null {
    let bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const frames: Frame[] = [];
    while (bytes.length >= HEAD_BYTES) {
      const length = bytes.readUInt32BE(1);
      if (length > this.#maxBytes) return null;
      if (bytes.length < HEAD_BYTES + length) break;
      frames.push({ type: bytes.readUInt8(0), payload: bytes.subarray(HEAD_BYTES, HEAD_BYTES + length) });
      bytes = bytes.subarray(HEAD_BYTES + length);
    }
    this.#rest = bytes;
    return frames;
  }
}
