import { Duplex } from "node:stream";
import { BrigError, isBrigError } from "../../errors.js";
import type { ChannelEvents } from "../channel/channel-events.js";
import { type Frame, protocolError } from "../channel/frames.js";
import { CONNECTED_BYTES, FrameType, INITIAL_CREDIT } from "../channel/protocol.js";
import type { RunnerLink } from "../channel/runner-link.js";
import { errnoName } from "../process/errno-names.js";
import { parseExit } from "../process/exit-record.js";
import { encodeUint32 } from "../process/spawn-request.js";

const CREDIT_STEP = 64 * 1024;
const INPUT_PIECE = 64 * 1024;
const BUFFERED_BYTES = 64 * 1024;
const JOINED_BYTES = 16 * 1024;

export interface ConnectionEvents {
  /** The payload is valid only until this returns. */
  onConnected(payload: Buffer): void;
  /** Called once, when the runner has closed its socket, or never had one. */
  onOver(failure: { errno: string } | { gone: BrigError } | null): void;
}

/**
 * One connection to a program in the sandbox, from the request for it to EXIT. Each direction ends by itself. A reset
 * by the program is an error of the stream, and `destroy` resets the connection inside.
 */
export class SandboxConnection extends Duplex implements ChannelEvents {
  readonly #link: RunnerLink;
  readonly #events: ConnectionEvents;
  readonly #channel: number;
  #isConnected = false;
  #isOver = false;
  #outputEnded = false;
  #inputEnded = false;
  #outputCredit = INITIAL_CREDIT;
  #ungranted = 0;
  #inputCredit = INITIAL_CREDIT;
  #unsent: { data: Buffer; callback: (error?: Error | null) => void } | undefined;

  constructor(link: RunnerLink, request: { type: number; payload: Uint8Array }, events: ConnectionEvents) {
    super({
      allowHalfOpen: true,
      readableHighWaterMark: BUFFERED_BYTES,
      writableHighWaterMark: BUFFERED_BYTES,
    });
    // If there were no listener, a reset would end the process of a caller who only reads.
    this.on("error", () => undefined);
    this.#link = link;
    this.#events = events;
    this.#channel = link.openChannel(request, this);
  }

  /* ---- frames from the runner ---- */

  onSocketFrame({ type, payload }: Frame): void {
    if (type !== FrameType.connected || payload.length !== CONNECTED_BYTES || this.#isConnected)
      throw protocolError("a frame that does not belong on a connection");
    this.#isConnected = true;
    this.#events.onConnected(payload);
  }

  onOutput(data: Buffer, isStderr: boolean): void {
    if (isStderr || !this.#isConnected || this.#outputEnded) throw protocolError("output of no connection");
    if (data.length === 0) {
      this.#outputEnded = true;
      if (!this.destroyed) callCallersCode(() => this.push(null));
      return;
    }
    this.#outputCredit -= data.length;
    if (this.#outputCredit < 0) throw protocolError("more from a connection than it was granted");
    this.#ungranted += data.length;
    // A copy, because the link reuses the buffer that holds the data.
    callCallersCode(() => {
      if (!this.destroyed && this.push(Buffer.from(data))) this.#grant();
    });
  }

  onCredit(bytes: number): void {
    this.#inputCredit += bytes;
    this.#sendUnsent();
  }

  onExit(payload: Buffer): void {
    const errno = parseSocketExit(payload, this);
    if (errno === null && this.#isConnected && !this.#outputEnded) {
      const error = protocolError("the end of a connection before its end of file");
      this.onGone(error);
      throw error;
    }
    this.#isOver = true;
    this.#events.onOver(errno === null ? null : { errno });
    if (!this.#isConnected) this.destroy();
    else if (errno !== null) this.#fail(socketError("the connection to the sandbox broke", errno));
  }

  onGone(error: BrigError): void {
    this.#isOver = true;
    this.#events.onOver({ gone: error });
    this.destroy(this.#isConnected ? error : undefined);
  }

  /* ---- calls of the stream's user ---- */

  override _read(): void {
    this.#grant();
  }

  override _write(data: Buffer, _encoding: string, callback: (error?: Error | null) => void): void {
    // A frame without bytes would mean the end to the runner; Node's HTTP server writes such pieces.
    if (data.length === 0) callback();
    else {
      this.#unsent = { data, callback };
      this.#sendUnsent();
    }
  }

  /** Small pieces, such as the head and the body of an answer, arrive at once. */
  override _writev(
    chunks: { chunk: Buffer; encoding: BufferEncoding }[],
    callback: (error?: Error | null) => void,
  ): void {
    const all = chunks.map(({ chunk }) => chunk);
    const isSmall = all.reduce((sum, { length }) => sum + length, 0) <= JOINED_BYTES;
    const pieces = isSmall ? [Buffer.concat(all)] : all;
    const next = (error?: Error | null) => {
      const piece = error ? undefined : pieces.shift();
      if (piece === undefined) callback(error);
      else this._write(piece, "buffer", next);
    };
    next();
  }

  override _final(callback: (error?: Error | null) => void): void {
    this.#inputEnded = true;
    if (!this.#isOver) this.#link.send(FrameType.input, this.#channel, Buffer.alloc(0));
    callback();
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    // When both directions have ended the runner may still be handing the last bytes to the program.
    const isComplete = this.#inputEnded && this.#outputEnded;
    if (!this.#isOver && !isComplete) this.#link.send(FrameType.kill, this.#channel, encodeUint32(0));
    const unsent = this.#unsent;
    this.#unsent = undefined;
    callback(error);
    unsent?.callback(error ?? new Error("the connection was closed"));
  }

  #sendUnsent(): void {
    while (this.#unsent && this.#inputCredit > 0 && !this.#isOver) {
      const { data, callback } = this.#unsent;
      const piece = data.subarray(0, Math.min(INPUT_PIECE, this.#inputCredit));
      this.#inputCredit -= piece.length;
      this.#link.send(FrameType.input, this.#channel, piece);
      this.#unsent = piece.length < data.length ? { data: data.subarray(piece.length), callback } : undefined;
      if (this.#unsent === undefined) callback();
    }
  }

  #grant(): void {
    if (this.#ungranted < CREDIT_STEP || this.#isOver || this.#outputEnded || this.destroyed) return;
    this.#outputCredit += this.#ungranted;
    this.#link.send(FrameType.credit, this.#channel, encodeUint32(this.#ungranted));
    this.#ungranted = 0;
  }

  /** Reports an error after everything that has arrived whole was read. */
  #fail(error: Error): void {
    if (this.#outputEnded && !this.readableEnded && !this.destroyed)
      this.once("end", () => this.destroy(error));
    else this.destroy(error);
  }
}

/**
 * Calls a function of the caller's while a frame is being read. An error of it is the caller's own, and must not be
 * taken for a fault of the stream to the runner.
 */
export function callCallersCode(call: () => void): void {
  try {
    call();
  } catch (error) {
    process.nextTick(() => {
      throw error;
    });
  }
}

/**
 * The errno with which the runner closed a socket, or null. Error: `protocol.invalid`, of which the channel is told,
 * since the link has forgotten it already.
 */
export function parseSocketExit(payload: Buffer, channel: Pick<ChannelEvents, "onGone">): string | null {
  try {
    const { kind, errno } = parseExit(payload);
    if (kind !== "socket") throw protocolError(`an EXIT of kind ${kind} for a socket`);
    return errno === 0 ? null : errnoName(errno);
  } catch (error) {
    if (isBrigError(error)) channel.onGone(error);
    throw error;
  }
}

const texts: ReadonlyMap<string, string> = new Map([
  ["EADDRINUSE", "another program in the sandbox listens there already"],
  ["EADDRNOTAVAIL", "the sandbox has no such address"],
  ["EACCES", "the sandbox's user may not listen on ports as low as this"],
  ["ECONNREFUSED", "nothing in the sandbox listens there"],
  ["ECONNRESET", "the program in the sandbox broke the connection"],
  ["EPIPE", "the program in the sandbox has closed the connection"],
  ["EMFILE", "the sandbox has too many connections open"],
]);

/** Error: `sandbox.port-in-use` or `sandbox.port-failed`. */
export function socketError(what: string, errno: string): BrigError {
  return new BrigError(`${what}: ${texts.get(errno) ?? errno}`, {
    code: errno === "EADDRINUSE" ? "sandbox.port-in-use" : "sandbox.port-failed",
    errno,
    cause: Object.assign(new Error(errno), { code: errno }),
  });
}
