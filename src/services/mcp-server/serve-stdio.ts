import type { Readable, Writable } from "node:stream";
import { serveStdio as serve } from "@modelcontextprotocol/server/stdio";
import { beforeAbort } from "../../lib/time/before-abort.js";
import { LineTransport } from "./line-transport.js";
import type { OpenClient } from "./served-client.js";

export interface StdioService {
  input: Readable;
  output: Writable;
  openClient: OpenClient;
  /** Aborting ends the service. */
  signal: AbortSignal;
}

/**
 * Serves one client until its input ends. Resolves once everything that the client started has ended. If the
 * signal aborts, it rejects with the signal's reason, after the same has ended.
 */
export async function serveMcpStdio({ input, output, openClient, signal }: StdioService): Promise<void> {
  const client = openClient({ isShared: false });
  const transport = new LineTransport(input, output);
  const connection = serve(() => client.createServer(), { transport });
  try {
    await beforeAbort(transport.ended, signal);
  } finally {
    await connection.close();
    await client.close();
  }
}
