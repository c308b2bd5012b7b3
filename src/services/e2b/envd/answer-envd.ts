import type { IncomingMessage, ServerResponse } from "node:http";
import type { MemoryShare } from "../../serve/http/memory-budget.js";
import type { ServedSandbox } from "../../serve/sandboxes/served-sandbox.js";

/** What clients take this daemon for: they use what that version can do. */
export const ENVD_VERSION = "0.6.4";

/** Where a request to the port of a sandbox's own daemon is answered. Who asks has been checked. */
export interface EnvdPlace {
  served: ServedSandbox;
  /** Absolute: where commands start, and what relative paths begin at. It can be written, and forks and snapshots carry it. */
  home: string;
  /** What the daemon calls the user that commands run as when nothing else is asked for. */
  user: string;
  /** Aborted when the client has gone, and when the service ends. */
  signal: AbortSignal;
  /** What is kept for the request counts here. */
  memory: MemoryShare;
}

/** Answers as E2B's daemon in a sandbox does: processes, terminals, files. */
export async function answerEnvd(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  _place: EnvdPlace,
): Promise<void> {
  const [path = ""] = `${incoming.url}`.split("?", 1);
  incoming.resume();
  if (incoming.method === "GET" && path === "/health") {
    outgoing.writeHead(204).end();
    return;
  }
  outgoing.writeHead(404, { "content-type": "application/json" });
  outgoing.end(JSON.stringify({ code: "unimplemented", message: `${path} is not supported` }));
}
