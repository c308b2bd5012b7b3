import type { Duplex } from "node:stream";
import { sharedSignal } from "../../lib/time/shared-signal.js";
import { FrameType } from "../channel/protocol.js";
import type { RunnerLink } from "../channel/runner-link.js";
import type {
  ConnectionOwner,
  InsideAddress,
  InsideConnection,
  InsideListener,
  InsideNetwork,
} from "../egress/inside-network.js";
import { encodeAddress } from "./address.js";
import { SandboxConnection } from "./connection.js";
import { receiveDatagrams } from "./datagrams.js";
import { SandboxListener } from "./listener.js";
import { OwnerSearch } from "./owners.js";
import { socketError } from "./socket-exit.js";

/** The loopback interface inside a sandbox, used from the host through the stream to the runner. */
export class SandboxNetwork implements InsideNetwork {
  readonly #link: RunnerLink;
  readonly #owners: OwnerSearch;
  readonly #callOf: (channel: number) => string | null;

  /** `callOf` says which call has started the processes of a channel. */
  constructor(link: RunnerLink, callOf: (channel: number) => string | null = () => null) {
    this.#link = link;
    this.#callOf = callOf;
    this.#owners = new OwnerSearch(link);
  }

  async listen(
    at: InsideAddress,
    onConnection: (connection: InsideConnection) => void,
  ): Promise<InsideListener> {
    return await SandboxListener.open(this.#link, at, onConnection);
  }

  async receiveDatagrams(
    at: InsideAddress,
    onDatagram: (data: Buffer, reply: (data: Buffer) => void) => void,
  ): Promise<InsideListener> {
    return await receiveDatagrams(this.#link, at, onDatagram);
  }

  async ownerOf(connection: InsideConnection): Promise<ConnectionOwner | null> {
    const owner = await this.#owners.find(connection);
    return owner === null ? null : { ...owner, callId: this.#callOf(owner.channel) };
  }

  /**
   * Connects to a server in the sandbox. Errors: `sandbox.port-failed`, with errno ECONNREFUSED if nothing listens
   * there; `sandbox.gone`; `usage.invalid`; the signal's reason after an abort.
   */
  async connect(to: InsideAddress, { signal }: { signal?: AbortSignal | undefined } = {}): Promise<Duplex> {
    signal?.throwIfAborted();
    const payload = encodeAddress(to);
    return await new Promise((resolve, reject) => {
      const abort = () => {
        connection.destroy();
        reject(signal?.reason);
      };
      const events = {
        onConnected() {
          signal?.removeEventListener("abort", abort);
          resolve(connection);
        },
        onOver(failure: { errno: string } | { gone: Error } | null) {
          signal?.removeEventListener("abort", abort);
          if (failure === null) return;
          const what = `port ${to.port} of the sandbox cannot be reached`;
          reject("gone" in failure ? failure.gone : socketError(what, failure.errno));
        },
      };
      const connection = new SandboxConnection(this.#link, { type: FrameType.connect, payload }, events);
      if (signal !== undefined) sharedSignal(signal).addEventListener("abort", abort, { once: true });
    });
  }
}
