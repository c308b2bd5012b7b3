import type { IncomingMessage } from "node:http";
import { formatBytes } from "../../../lib/bytes.js";
import { Refusal } from "./refusal.js";

/** A body that is taken as it comes, however long it is. */
export interface UploadedBody extends AsyncIterable<Buffer> {
  /** As the client has announced it. */
  readonly lengthBytes: number | null;
}

/** The most that a client may send in one request. */
const MAX_UPLOAD_BYTES = 64 * 1024 ** 3;

/**
 * The body of a request, whose client is disconnected if it sends nothing for `silentMs` while somebody waits for more. Leaving it early does not
 * close the connection: the client has yet to receive why it is refused. Errors: a refusal with 413; the connection's, so that half a body is
 * never taken for a whole one.
 */
export function uploadedBody(incoming: IncomingMessage, silentMs: number): UploadedBody {
  const { "content-length": announced } = incoming.headers;
  const lengthBytes = announced === undefined ? null : Number(announced);
  if (Number(lengthBytes) > MAX_UPLOAD_BYTES) throw tooLarge();
  return { lengthBytes, [Symbol.asyncIterator]: () => piecesOf(incoming, silentMs) };
}

async function* piecesOf(incoming: IncomingMessage, silentMs: number): AsyncGenerator<Buffer> {
  const pieces = incoming.iterator({ destroyOnReturn: false });
  let bytes = 0;
  try {
    for (;;) {
      const timer = setTimeout(() => incoming.destroy(), silentMs);
      const next = await pieces.next().finally(() => clearTimeout(timer));
      if (next.done === true) break;
      const piece = next.value as Buffer;
      bytes += piece.length;
      if (bytes > MAX_UPLOAD_BYTES) throw tooLarge();
      yield piece;
    }
  } finally {
    await pieces.return?.();
  }
  if (!incoming.complete) throw new Error("the connection was closed before the end of the body");
}

const LAST_BYTES_MS = 2000;

/** Gives a client that is still sending a moment to end, since it may not read an answer before that. What it sends is discarded. */
export async function discardRest(incoming: IncomingMessage): Promise<void> {
  if (incoming.complete || incoming.destroyed) return;
  incoming.resume();
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, LAST_BYTES_MS);
    incoming.once("end", resolve).once("close", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

function tooLarge(): Refusal {
  return new Refusal(`a request may have at most ${formatBytes(MAX_UPLOAD_BYTES)}`, {
    status: 413,
    code: "file.too-large",
    hint: "send it in several requests",
  });
}
