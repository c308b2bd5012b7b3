import type { IncomingMessage } from "node:http";

/**
 * Calls `take` with each piece of a message, and resolves at its end. By events, because an asynchronous iterator takes
 * several turns of the event loop for a message of one piece. Leaving early does not close the connection: a client
 * that is still sending has yet to receive why it is refused. Errors: those of `take` and of the connection.
 */
export async function takePieces(message: IncomingMessage, take: (piece: Buffer) => void): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const settle = (error?: unknown) => {
      message.off("data", onData).off("end", settle).off("close", onClose);
      if (error === undefined) resolve();
      else reject(error);
    };
    const onData = (piece: Buffer) => {
      try {
        take(piece);
      } catch (error) {
        message.pause();
        settle(error);
      }
    };
    const onClose = () => settle(closed());
    // A message that is closed already says nothing any more.
    if (message.closed) return void reject(closed());
    // An error may still come after the end, and would end the process if nobody listened.
    message.on("data", onData).once("end", settle).on("error", settle).once("close", onClose);
  });
}

function closed(): Error {
  return new Error("the connection was closed before the end of the message");
}
