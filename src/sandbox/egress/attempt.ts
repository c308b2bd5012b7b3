import type { ConnectionOwner } from "./inside-network.js";
import type { Denial } from "./rules/denial.js";

/** How a program came to the proxy; "direct" connections are to an address that a name got from brig's DNS. */
export type EgressWay = "http" | "connect" | "socks" | "direct" | "name";

/** "setup" while the set-up of the sandbox runs, "run" afterwards and where there is none. */
export type EgressPhase = "setup" | "run";

/** Outcome of an attempt. */
export type EgressOutcome =
  | { kind: "allowed" }
  | { kind: "denied"; denial: Denial }
  /** The target could not be reached, or the connection broke. `errno` is for example ECONNREFUSED. */
  | { kind: "failed"; errno: string };

/** One attempt of a program in the sandbox to reach something, after it ended. */
export interface EgressAttempt {
  startedAtMs: number;
  /** Phase in which it began. */
  phase: EgressPhase;
  durationMs: number;
  way: EgressWay;
  /** Spelled as in the program's request, with unprintable characters replaced. */
  host: string;
  /** Null for a name that was only looked up. */
  port: number | null;
  /** Method of a plain HTTP request. The path is without its query. */
  method: string | null;
  path: string | null;
  outcome: EgressOutcome;
  /** The entry of the allow-list that allowed it. */
  rule: string | null;
  bytesOut: number;
  bytesIn: number;
  /** Null if no process could be found. */
  owner: ConnectionOwner | null;
}

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
