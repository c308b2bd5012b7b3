import type { Socket } from "node:net";
import type { Attempting } from "../gate.js";
import type { Endpoint } from "../rules/decide.js";
import type { KeptConnection } from "./server-connection.js";

/** Where an HTTP connection came from. */
export interface HttpOrigin {
  attempting: Attempting;
  kept: KeptConnection;
  /** Where it leads, if not to the proxy. */
  fixed: {
    endpoint: Endpoint;
    /** Whether the program speaks TLS, which ends here. */
    isTls: boolean;
    /** The connection that is already open to there, once. */
    takeSocket(): Socket | null;
  } | null;
}
