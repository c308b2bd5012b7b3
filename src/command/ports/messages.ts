import type { Socket } from "node:net";
import { nullish, object, oneOf, positiveInteger, type Shape, string } from "../../lib/json/json-shape.js";
import { parseJson } from "../../lib/json/parse-json.js";
import { LineReader } from "../../lib/line-reader.js";

const MAX_LINE_BYTES = 8192;

const hostPort: Shape<number> = (value, path) => (value === 0 ? 0 : positiveInteger(value, path));
const token = string;

const openShape = object({ kind: oneOf("open"), token, sandboxPort: positiveInteger, hostPort });
const closeShape = object({ kind: oneOf("close"), token, hostPort: positiveInteger });
const openedShape = object({ kind: oneOf("opened"), port: positiveInteger, url: string });
const closedShape = object({ kind: oneOf("closed", "unknown") });
const failedShape = object({ kind: oneOf("failed"), code: string, message: string, hint: nullish(string) });

/** A request of `brig port` to the owner of a sandbox. */
export const requestShape = either(openShape, closeShape);
export type ControlRequest = ReturnType<typeof requestShape>;

/** The owner's answer. `unknown` means that there is no such port to close. */
export const replyShape = either(either(openedShape, closedShape), failedShape);
export type ControlReply = ReturnType<typeof replyShape>;

function either<A, B>(one: Shape<A>, other: Shape<B>): Shape<A | B> {
  return (value, path) => {
    try {
      return one(value, path);
    } catch {
      return other(value, path);
    }
  };
}

/** Parses the first line of a connection as JSON. Undefined if the line is not JSON, is too long, or does not end. */
export async function readMessage(socket: Socket, signal: AbortSignal): Promise<unknown> {
  const reader = new LineReader(MAX_LINE_BYTES);
  const stop = () => socket.destroy();
  signal.addEventListener("abort", stop, { once: true });
  try {
    signal.throwIfAborted();
    // The iterator would destroy the socket, which the answer still needs.
    for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
      const [line] = reader.push(chunk);
      if (line !== undefined) return line.kind === "line" ? parseJson(line.text) : undefined;
    }
  } catch {
    // The connection broke, or there was no more time.
  } finally {
    signal.removeEventListener("abort", stop);
  }
  return undefined;
}

/** Sends a message as one line. False if the connection has ended. */
export async function sendMessage(socket: Socket, message: ControlRequest | ControlReply): Promise<boolean> {
  if (socket.destroyed || !socket.writable) return false;
  return await new Promise((resolve) => {
    socket.once("close", () => resolve(false));
    socket.write(`${JSON.stringify(message)}\n`, (error) => resolve(error === null || error === undefined));
  });
}
