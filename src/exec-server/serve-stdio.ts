import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import { Connection, MAX_MESSAGE_BYTES, type SendText } from "./connection.js";
import type { CommonOptions } from "./sandbox-set.js";
import { SessionList } from "./session-list.js";
import { LineReader } from "./wire/line-reader.js";

export interface StdioServer {
  input: Readable;
  output: Writable;
  sandbox: CommonOptions;
  directory: string;
  /** Aborting ends the service. */
  signal: AbortSignal;
}

/**
 * Serves one client, one message to a line, until its input ends. Then everything that it ran has ended, and its sandboxes are gone. Error:
 * the signal's reason, after the same end.
 */
export async function serveStdio({ input, output, sandbox, directory, signal }: StdioServer): Promise<void> {
  const sessions = new SessionList({ sandbox, directory, isResumable: false });
  const connection = new Connection(sessions, pacedLines(output, signal));
  const lines = new LineReader(MAX_MESSAGE_BYTES);
  const stop = () => input.destroy();
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  try {
    for await (const chunk of input)
      for (const line of lines.push(chunk))
        if (line.kind === "line") await connection.receive(line.text);
        else await connection.refuse(`a message may have at most ${MAX_MESSAGE_BYTES} bytes`);
    signal.throwIfAborted();
  } catch (error) {
    throw signal.aborted ? signal.reason : error;
  } finally {
    signal.removeEventListener("abort", stop);
    connection.close();
    await sessions.close();
  }
}

/** Writes lines; the promise of each resolves when there is room for the next one, or nobody reads any more. */
function pacedLines(output: Writable, signal: AbortSignal): SendText {
  let room: Promise<void> | undefined;
  return async (text) => {
    if (output.write(`${text}\n`)) return;
    room ??= once(output, "drain", { signal })
      .catch(() => undefined)
      .then(() => {
        room = undefined;
      });
    await room;
  };
}
