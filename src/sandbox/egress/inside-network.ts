import type { Duplex } from "node:stream";

/** An address of the sandbox's loopback, and a port on it. */
export interface InsideAddress {
  address: string;
  port: number;
}

/** A connection that a program in the sandbox opened to loopback, as the host sees it. */
export interface InsideConnection {
  /** The address and port that the program connected to. */
  to: InsideAddress;
  /** The program's own end. */
  from: InsideAddress;
  /** Half-open is allowed; `destroy()` resets the connection inside. */
  stream: Duplex;
}

export interface InsideListener {
  close(): Promise<void>;
}

/** The program in the sandbox that owns a connection, and the call that started it. */
export interface ConnectionOwner {
  channel: number;
  pid: number;
  /** Name that the program gives itself, with unprintable characters replaced. */
  program: string;
  /** The `callId` that the command was started with; null if it had none. */
  callId: string | null;
}

/** The loopback network inside a sandbox, on which the egress proxy listens. */
export interface InsideNetwork {
  /** Errors: `sandbox.port-in-use`, `sandbox.gone`. */
  listen(at: InsideAddress, onConnection: (connection: InsideConnection) => void): Promise<InsideListener>;
  /** Datagrams to a loopback address and port; `reply` sends one back to where it came from. */
  receiveDatagrams(
    at: InsideAddress,
    onDatagram: (data: Buffer, reply: (data: Buffer) => void) => void,
  ): Promise<InsideListener>;
  /** The call whose processes own this connection; null if none could be found. */
  ownerOf(connection: InsideConnection): Promise<ConnectionOwner | null>;
}

/**
 * The next bytes of a paused stream; null if it ends before it has so many, or takes too long. Nothing beyond
 * them is read.
 */
export function readExactly(stream: Duplex, bytes: number, timeoutMs: number): Promise<Buffer | null> {
  return new Promise((resolve) => {
    const look = () => {
      const data = bytes === 0 ? Buffer.alloc(0) : (stream.read(bytes) as Buffer | null);
      if (data !== null) settle(data.length === bytes ? data : null);
      else if (stream.readableEnded || stream.destroyed) settle(null);
    };
    const settle = (data: Buffer | null) => {
      clearTimeout(timer);
      stream.off("readable", look).off("end", look).off("close", look);
      resolve(data);
    };
    const timer = setTimeout(() => settle(null), timeoutMs);
    stream.on("readable", look).on("end", look).on("close", look);
    look();
  });
}
