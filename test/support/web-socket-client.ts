import { once } from "node:events";
import { type ClientOptions, WebSocket } from "ws";

/** A WebSocket, and what has come over it. */
export interface SocketClient {
  socket: WebSocket;
  /** What binary frames have brought. */
  text(): string;
  /** What text frames have brought. */
  frames: unknown[];
  /** How it was closed. */
  closed: Promise<{ code: number; reason: string }>;
}

/** Resolves when the connection is open. Error: a refusal has the status as its message. */
export async function openSocket(url: string, options: ClientOptions): Promise<SocketClient> {
  const socket = new WebSocket(url.replace(/^http/, "ws"), options);
  const pieces: Buffer[] = [];
  const frames: unknown[] = [];
  socket.on("message", (data: Buffer, isBinary) => {
    if (isBinary) pieces.push(data);
    else frames.push(JSON.parse(data.toString()));
  });
  const closed = new Promise<{ code: number; reason: string }>((resolve) =>
    socket.once("close", (code, reason) => resolve({ code, reason: reason.toString() })),
  );
  const refused = new Promise<never>((_, reject) =>
    socket.once("unexpected-response", (_request, response) => {
      response.resume();
      reject(new Error(`${response.statusCode}`));
    }),
  );
  await Promise.race([once(socket, "open"), refused]);
  socket.on("error", () => undefined);
  return { socket, text: () => Buffer.concat(pieces).toString(), frames, closed };
}
