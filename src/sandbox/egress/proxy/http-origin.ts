import type { Socket } from "node:net";
import type { Attempting } from "../gate.js";
import type { Endpoint } from "../rules/decide.js";
import type { KeptConnection } from "./server-connection.js";

/** Origin of an HTTP connection. */
export interface HttpOrigin {
  attempting: Attempting;
  kept: KeptConnection;
  /** The server it leads to; null if it leads to the proxy. */
  fixed: {
    endpoint: Endpoint;
    /** Whether the program speaks TLS, which ends here. */
    isTls: boolean;
    /** The connection that is already open to there, once. */
    takeSocket(): Socket | null;
  } | null;
}
