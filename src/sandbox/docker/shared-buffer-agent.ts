import http from "node:http";
import { connect, type NetConnectOpts, type Socket } from "node:net";
import type { Duplex } from "node:stream";

/** Sockets whose data events pass on the shared buffer instead of a copy. */
const sharing = new WeakSet<object>();
const READ_BYTES = 64 * 1024;

/**
 * Opens sockets that read into one buffer each. Node otherwise allocates 64 KiB for each read, and a gigabyte
 * of output grows the process by some 70 MB of garbage. HTTP gets copies, since it keeps what it reads.
 */
export class SharedBufferAgent extends http.Agent {
  override createConnection(options: NetConnectOpts): Socket {
    const socket: Socket = connect({
      ...options,
      onread: {
        buffer: Buffer.allocUnsafeSlow(READ_BYTES),
        callback(length: number, buffer: Uint8Array) {
          return deliver(socket, Buffer.from(buffer.buffer, buffer.byteOffset, length));
        },
      },
    });
    return socket;
  }
}

/** False stops reading until the stream wants more. */
function deliver(socket: Socket, bytes: Buffer): boolean {
  const isSharing = sharing.has(socket);
  // A stream that has no listener keeps the bytes it is given, so it needs a copy.
  if (isSharing && (!socket.readableFlowing || socket.readableLength > 0))
    return socket.push(Buffer.from(bytes));
  socket.emit("data", isSharing ? bytes : Buffer.from(bytes));
  return true;
}

/** From now on the bytes of a data event of this socket are overwritten after the event. */
export function shareBufferOf(socket: Duplex): void {
  sharing.add(socket);
}
