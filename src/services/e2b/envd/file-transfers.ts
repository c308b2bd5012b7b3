import type { IncomingMessage, ServerResponse } from "node:http";
import { posix } from "node:path";
import { PassThrough, Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip, createGzip } from "node:zlib";
import { isBrigError } from "../../../errors.js";
import { sendJson } from "../../serve/http/other-protocol.js";
import { Refusal } from "../../serve/http/refusal.js";
import { discardRest, uploadedBody } from "../../serve/http/uploaded-body.js";
import { ConnectFailure } from "./connect-protocol.js";
import type { FilesPlace } from "./filesystem-calls.js";
import { boundaryOf, readParts } from "./multipart.js";
import { refuseOtherUser, resolvePath } from "./place-paths.js";

/** What is on the way between the client and the sandbox, on each side. */
const TRANSFER_BYTES = 1024 * 1024;
const MAX_FILES = 1000;

/** Answers requests for the content of files. Errors: refusals; `file.*`. */
export async function answerFiles(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  place: FilesPlace,
): Promise<void> {
  const query = new URLSearchParams(`${incoming.url}`.split("?").slice(1).join("?"));
  place.memory.take(TRANSFER_BYTES);
  try {
    refuseOtherUser(query.get("username") ?? "", place);
    if (incoming.method === "GET" || incoming.method === "HEAD")
      await sendFile(query.get("path") ?? "", { incoming, outgoing, place });
    else if (incoming.method === "POST") await takeFiles(query.get("path"), { incoming, outgoing, place });
    else throw new Refusal("this path takes only GET and POST", { status: 405, code: "usage.invalid" });
  } catch (error) {
    if (!place.signal.aborted) await discardRest(incoming);
    throw withStatus(error);
  }
}

interface Transfer {
  incoming: IncomingMessage;
  outgoing: ServerResponse;
  place: FilesPlace;
}

async function sendFile(path: string, { incoming, outgoing, place }: Transfer): Promise<void> {
  const { sandbox, home, signal } = place;
  const whole = resolvePath(path, home);
  const { type, sizeBytes, modifiedMs } = await sandbox.files.stat(whole, { signal });
  if (type === "directory")
    throw new Refusal(`${whole} is a directory`, { status: 400, code: "file.is-directory" });
  if (incoming.method === "HEAD") return void outgoing.writeHead(200, { "content-length": sizeBytes }).end();
  // A file of the kernel's has any size, and says 0. Any other ends where it ended when it was asked for, even if it grows.
  const isOfKernel = sizeBytes === 0;
  const content = sandbox.files.readStream(whole, {
    lengthBytes: isOfKernel ? undefined : sizeBytes,
    signal,
  });
  const pieces = content[Symbol.asyncIterator]();
  // What it is refused for is found out before the head of the answer is sent.
  const first = await pieces.next();
  const isEmpty = first.done === true;
  const wantsGzip = incoming.headers["accept-encoding"] === "gzip" && !isEmpty;
  outgoing.writeHead(200, {
    "content-type": "application/octet-stream",
    "last-modified": new Date(modifiedMs).toUTCString(),
    vary: "accept-encoding",
    ...(wantsGzip && { "content-encoding": "gzip" }),
    ...(!wantsGzip && (isEmpty || !isOfKernel) && { "content-length": isEmpty ? 0 : sizeBytes }),
  });
  const all = async function* () {
    try {
      let sent = 0;
      for (let next = first; next.done !== true; next = await pieces.next()) {
        sent += next.value.length;
        yield next.value;
      }
      // The client would wait for the rest.
      if (!isOfKernel && sent < sizeBytes) throw new Error(`${whole} became shorter while it was read`);
    } finally {
      await pieces.return?.();
    }
  };
  const passes = wantsGzip ? createGzip() : new PassThrough();
  // An answer that cannot go on is cut, and so is the connection of a client that has gone.
  await pipeline(all, passes, outgoing, { signal }).catch(() => outgoing.destroy());
}

async function takeFiles(path: string | null, { incoming, outgoing, place }: Transfer): Promise<void> {
  refuseMetadata(incoming);
  const body = uploaded(incoming);
  const type = `${incoming.headers["content-type"] ?? ""}`;
  const written: object[] = [];
  if (/^application\/octet-stream\b/i.test(type)) {
    if (path === null) throw invalid("the query has no path");
    written.push(await takeFile(path, body, place));
  } else if (/^multipart\/form-data\b/i.test(type)) {
    const paths = new Set<string>();
    for await (const { name, fileName, content } of readParts(body, boundaryOf(type))) {
      if (name !== "file") continue;
      const wanted = path ?? fileName;
      if (wanted === undefined) throw invalid("a part of the form has no filename, and the query no path");
      const whole = resolvePath(wanted, place.home);
      if (paths.has(whole)) throw invalid(`${whole} is in the form twice`);
      if (paths.size >= MAX_FILES) throw invalid(`a form may have at most ${MAX_FILES} files`);
      paths.add(whole);
      written.push(await takeFile(whole, content, place));
    }
  } else throw invalid(`the type ${JSON.stringify(type)} is not supported, only forms and octet-stream`);
  sendJson(outgoing, { value: written });
}

async function takeFile(path: string, content: AsyncIterable<Buffer>, place: FilesPlace): Promise<object> {
  const { sandbox, home, signal } = place;
  const whole = resolvePath(path, home);
  await sandbox.files.mkdir(posix.dirname(whole), { recursive: true, mode: 0o755, signal });
  await sandbox.files.writeStream(whole, content, { signal });
  return { name: posix.basename(whole), path: whole, type: "file" };
}

/** How long a client may send nothing. */
const SILENT_MS = 120_000;

function uploaded(incoming: IncomingMessage): AsyncIterable<Buffer> {
  const encoding = incoming.headers["content-encoding"];
  const body = uploadedBody(incoming, SILENT_MS);
  if (encoding === "gzip") return gunzipped(body);
  if (encoding === undefined || encoding === "identity") return body;
  throw invalid(`the encoding ${encoding} is not supported`);
}

async function* gunzipped(body: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const source = Readable.from(body, { objectMode: false });
  const gunzip = createGunzip();
  source.on("error", (error) => gunzip.destroy(error));
  try {
    for await (const piece of source.pipe(gunzip) as AsyncIterable<Buffer>) yield piece;
  } catch (cause) {
    if (cause instanceof Error && "code" in cause && `${cause.code}`.startsWith("Z_"))
      throw new Refusal("the body is not in the format gzip", { status: 400, code: "usage.invalid", cause });
    throw cause;
  } finally {
    source.destroy();
  }
}

function refuseMetadata({ headers }: IncomingMessage): void {
  const named = Object.keys(headers).find((name) => name.startsWith("x-metadata-"));
  if (named !== undefined) throw invalid(`metadata of files is not supported (${named})`);
}

function invalid(message: string): Refusal {
  return new Refusal(message, { status: 400, code: "usage.invalid" });
}

const fullDisk: ReadonlySet<string | undefined> = new Set(["ENOSPC", "EDQUOT"]);

/** The statuses that clients of E2B tell their errors by. */
function withStatus(error: unknown): unknown {
  if (error instanceof ConnectFailure) return invalid(error.message);
  if (!isBrigError(error) || error instanceof Refusal) return error;
  const { code, message, hint, errno } = error;
  const refusal = (status: number) => new Refusal(message, { status, code, hint, cause: error });
  if (fullDisk.has(errno)) return refusal(507);
  if (code === "sandbox.gone") return refusal(502);
  if (code === "file.is-directory" || code === "file.not-directory" || code === "file.not-regular")
    return refusal(400);
  return error;
}
