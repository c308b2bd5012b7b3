import type { BrigError } from "../../errors.js";
import type { Frame } from "./frames.js";

/** Called with what arrives on one channel. */
export interface ChannelEvents {
  onOutput(data: Buffer, isStderr: boolean): void;
  /** The runner accepts this many more bytes of input. */
  onCredit(bytes: number): void;
  /** Frames that only channels of sockets have: BOUND, CONNECTED and DATAGRAM. */
  onSocketFrame?(frame: Frame): void;
  /** The last event of the channel. */
  onExit(payload: Buffer): void;
  /** Called instead of `onExit` when the sandbox is gone. */
  onGone(error: BrigError): void;
}
