import type { Readable, Writable } from "node:stream";
import type { HostProcesses } from "../../lib/owner.js";
import { editorAgent } from "./editor-agent.js";
import { SessionList } from "./session-list.js";
import type { SessionOpener } from "./session-opener.js";
import { messageStream } from "./wire/message-stream.js";

export interface AcpServer {
  input: Readable;
  output: Writable;
  opener: SessionOpener;
  version: string;
  processes: HostProcesses;
  /** Aborting ends the service. */
  signal: AbortSignal;
}

/**
 * Serves one client by the Agent Client Protocol until its input ends. Before this resolves, every prompt is
 * interrupted and every container of its sessions is removed. An abort of the signal does the same, and
 * rejects with the signal's reason.
 */
export async function serveAcp({ input, output, signal, ...server }: AcpServer): Promise<void> {
  const over = new AbortController();
  const stop = () => {
    over.abort();
    input.destroy();
  };
  const sessions = new SessionList({ opener: server.opener, onStuck: stop });
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  try {
    const stream = messageStream({ input, output, signal: over.signal });
    await editorAgent({ ...server, sessions }).connect(stream).closed;
  } finally {
    signal.removeEventListener("abort", stop);
    // The client is gone: from now on nothing waits until it reads.
    over.abort();
    await sessions.close();
  }
  signal.throwIfAborted();
}
