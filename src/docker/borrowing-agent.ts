import http from "node:http";
import { connect, type NetConnectOpts, type Socket } from "node:net";
import type { Duplex } from "node:stream";

/** Sockets whose data events lend the buffer that they read into. */
const lending = new WeakSet<object>();
const READ_BYTES = 64 * 1024;

/**
 * Sockets that read into one buffer of their own. Node otherwise allocates 64 KiB for each read, and a gigabyte of
 * output grows the process by some 70 MB of garbage before it is collected. What HTTP is given of it is copied, since it keeps it.
 */
export class BorrowingAgent extends http.Agent {
  override createConnection(options: NetConnectOpts): Socket {
    const socket: Socket = connect({
      ...options,
      onread: {
        buffer: Buffer.allocUnsafeSlow(READ_BYTES),
        callback(length: number, bytes: Uint8Array) {
          return deliver(socket, Buffer.from(bytes.buffer, bytes.byteOffset, length));
        },
      },
    });
    return socket;
  }
}

/** False stops reading until somebody wants more. */
function deliver(socket: Socket, borrowed: Buffer): boolean {
  const isLent = lending.has(socket);
  // Before anybody listens a stream keeps what comes.
  if (isLent && (!socket.readableFlowing || socket.readableLength > 0))
    return socket.push(Buffer.from(borrowed));
  socket.emit("data", isLent ? borrowed : Buffer.from(borrowed));
  return true;
}

/** From now on a data event of such a socket lends its bytes: they are overwritten after the event. */
export function lendFrom(socket: Duplex): void {
  lending.add(socket);
}
