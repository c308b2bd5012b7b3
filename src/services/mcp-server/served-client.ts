import type { McpServer, Server } from "@modelcontextprotocol/server";

/** What brig keeps for a client that it serves. */
export interface ServedClient {
  /**
   * Makes a server of the SDK; the transport connects and closes it. Called once for a client with a session,
   * or twice if the client asks what the server can do before it begins. Called for each request of clients
   * without a session.
   */
  createServer(): McpServer | Server;
  /**
   * The client is gone, or the service ends. Resolves when everything that the client has started has ended.
   * Rejects if something could not be ended.
   */
  close(): Promise<void>;
}

/**
 * Called when a client begins a session. Clients of 2026-07-28 over HTTP have no session: for all of them
 * together it is called once, with `isShared`. What such a client starts and wants to use in a later request
 * needs a name, which the client passes along.
 */
export type OpenClient = (options: { isShared: boolean }) => ServedClient;

/** The longest message that a client may send, as a line or as the body of a request. */
export const MAX_MESSAGE_BYTES = 32 * 1024 * 1024;
/** How many requests may wait for their answers at the same time: more than an honest client sends. */
export const MAX_UNANSWERED = 512;
/** How many bytes all requests that wait for their answers may have together. */
export const MAX_UNANSWERED_BYTES = 128 * 1024 * 1024;

/** Waits for all of them, even if one fails; then rejects with the first failure. */
export async function allEnded(ends: readonly Promise<void>[]): Promise<void> {
  for (const end of await Promise.allSettled(ends)) if (end.status === "rejected") throw end.reason;
}
