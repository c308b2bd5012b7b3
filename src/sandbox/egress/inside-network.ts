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
