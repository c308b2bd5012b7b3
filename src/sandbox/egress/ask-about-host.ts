import type { ConnectionOwner } from "./inside-network.js";

/** A host that no rule allows, and that a program wants to connect to through the proxy. */
export interface AskedHost {
  /** Host and port, in the syntax of an allow-list. */
  host: string;
  /** A port of the machine that brig runs on. */
  isOwnMachine: boolean;
  /** Null if it is not known. */
  owner: ConnectionOwner | null;
}

/** Answer of the user. */
export type HostAnswer =
  /** Allows only this connection. */
  | { kind: "once" }
  /** Allows the host in this sandbox from now on. */
  | { kind: "session" }
  /** `reason`: in the user's words, for the program and the model. */
  | { kind: "declined"; reason: string | null }
  /** Nobody was asked. */
  | { kind: "not-asked" };

/** Called for each such connection, which waits for the answer. Must not reject. */
export type AskAboutHost = (asked: AskedHost) => Promise<HostAnswer>;
