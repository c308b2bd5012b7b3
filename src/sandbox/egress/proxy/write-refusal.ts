import type { Duplex } from "node:stream";
import { dropRest, reset } from "../tunnel/join.js";
import type { Refusal } from "./refusal.js";

/** Writes to a connection that has no response object: the tunnel or upgrade was not made, and nothing follows. */
export function writeRefusal(stream: Duplex, { status, outcome, text }: Refusal): void {
  if (stream.destroyed || !stream.writable) {
    reset(stream);
    return;
  }
  const body = Buffer.from(text);
  stream.on("error", () => undefined);
  stream.end(
    `HTTP/1.1 ${status} ${reasons[status] ?? "Error"}\r\nContent-Type: text/plain; charset=utf-8\r\n` +
      `Content-Length: ${body.length}\r\nX-Brig-Egress: ${outcome}\r\nConnection: close\r\n\r\n${text}`,
  );
  dropRest(stream);
}

const reasons: Record<number, string> = {
  400: "Bad Request",
  403: "Forbidden",
  405: "Method Not Allowed",
  421: "Misdirected Request",
  431: "Request Header Fields Too Large",
  502: "Bad Gateway",
  503: "Service Unavailable",
  504: "Gateway Timeout",
};
