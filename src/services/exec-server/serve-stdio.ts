import type { Readable, Writable } from "node:stream";
import { LineReader } from "../../lib/line-reader.js";
import { PacedOutput } from "../../lib/paced-output.js";
import { Connection, MAX_MESSAGE_BYTES } from "./connection.js";
import type { CommonOptions } from "./sandbox-set.js";
import { SessionList } from "./session-list.js";

export interface StdioServer {
  input: Readable;
  output: Writable;
  sandbox: CommonOptions;
  directory: string;
  /** Aborting ends the service. */
  signal: AbortSignal;
}

/**
 * Serves one client, which sends one message per line, until its input ends. Returns when every process of the client
 * has ended and its sandboxes are removed. An abort does the same, and is thrown with the signal's reason.
 */
export async function serveStdio({ input, output, sandbox, directory, signal }: StdioServer): Promise<void> {
  const sessions = new SessionList({ sandbox, directory, isResumable: false });
  const paced = new PacedOutput(output, signal);
  const connection = new Connection(sessions, (text) => paced.write(`${text}\n`));
  const lines = new LineReader(MAX_MESSAGE_BYTES);
  const stop = () => input.destroy();
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  try {
    for await (const chunk of input)
      for (const line of lines.push(chunk))
        if (line.kind === "line") connection.receive(line.text);
        else connection.refuse(`a message may have at most ${MAX_MESSAGE_BYTES} bytes`);
    signal.throwIfAborted();
  } catch (error) {
    throw signal.aborted ? signal.reason : error;
  } finally {
    signal.removeEventListener("abort", stop);
    connection.close();
    await sessions.close();
  }
}
