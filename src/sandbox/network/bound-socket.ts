import type { BrigError } from "../../errors.js";
import type { ChannelEvents } from "../channel/channel-events.js";
import { type Frame, protocolError } from "../channel/frames.js";
import { ADDRESS_BYTES, FrameType, LISTEN_BYTES, ListenKind } from "../channel/protocol.js";
import type { RunnerLink } from "../channel/runner-link.js";
import type { InsideAddress } from "../egress/inside-network.js";
import { encodeUint32 } from "../process/spawn-request.js";
import { encodeAddress, parseAddress } from "./address.js";
import { parseSocketExit, socketError } from "./socket-exit.js";

/** The channel of a LISTEN: a socket in the sandbox that has an address. */
export class BoundSocket implements ChannelEvents {
  /** Errors: `sandbox.port-in-use`, `sandbox.port-failed`, `sandbox.gone`. */
  readonly bound: Promise<InsideAddress>;
  readonly channel: number;
  readonly #link: RunnerLink;
  readonly #at: InsideAddress;
  readonly #onDatagram: ((payload: Buffer) => void) | undefined;
  readonly #over: Promise<void>;
  #isOver = false;
  #settleBound!: { resolve: (at: InsideAddress) => void; reject: (error: unknown) => void };
  #settleOver!: () => void;

  constructor(link: RunnerLink, at: InsideAddress, onDatagram?: (payload: Buffer) => void) {
    this.#link = link;
    this.#at = at;
    this.#onDatagram = onDatagram;
    this.bound = new Promise((resolve, reject) => {
      this.#settleBound = { resolve, reject };
    });
    this.#over = new Promise((resolve) => {
      this.#settleOver = resolve;
    });
    const payload = Buffer.alloc(LISTEN_BYTES);
    payload.writeUInt8(onDatagram === undefined ? ListenKind.stream : ListenKind.datagrams, 0);
    encodeAddress(at).copy(payload, LISTEN_BYTES - ADDRESS_BYTES);
    this.channel = link.openChannel({ type: FrameType.listen, payload }, this);
  }

  async close(): Promise<void> {
    if (!this.#isOver) this.#link.send(FrameType.kill, this.channel, encodeUint32(0));
    await this.#over;
  }

  onSocketFrame({ type, payload }: Frame): void {
    if (type === FrameType.bound && payload.length === ADDRESS_BYTES)
      this.#settleBound.resolve(parseAddress(payload, 0));
    else if (type !== FrameType.datagramFromRunner || payload.length < ADDRESS_BYTES || !this.#onDatagram)
      throw protocolError("a frame that does not belong on a socket that is bound");
    else this.#onDatagram(payload);
  }

  onOutput(): void {
    throw protocolError("output of a socket that is bound");
  }

  onCredit(): void {
    throw protocolError("credit for a socket that is bound");
  }

  onExit(payload: Buffer): void {
    const { address, port } = this.#at;
    const errno = parseSocketExit(payload, this);
    this.#end(socketError(`port ${port} of ${address} cannot be listened on in the sandbox`, errno ?? "EIO"));
  }

  onGone(error: BrigError): void {
    this.#end(error);
  }

  /** The error matters only to who still waits for the address. */
  #end(error: BrigError): void {
    this.#isOver = true;
    this.#settleBound.reject(error);
    this.#settleOver();
  }
}
