import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { PassThrough } from "node:stream";
import { finished, pipeline } from "node:stream/promises";
import { isBrigError } from "../../../errors.js";
import { readOrNull } from "../../../lib/json/json-shape.js";
import { parseJson } from "../../../lib/json/parse-json.js";
import { AnySignal } from "../../../lib/time/any-signal.js";
import { readVersion } from "../../../version.js";
import { readArchive, TOP, writeArchive } from "../../serve/files/sandbox-archive.js";
import { refusedAnswer } from "../../serve/http/refusal.js";
import type { OutputChunk, OutputLog } from "../../serve/processes/output-log.js";
import { type Usage, usageOf } from "../../serve/sandboxes/usage.js";
import { upRequestShape } from "../wire/messages.js";
import { asSentError, notUnderstood } from "../wire/sent-error.js";
import { type LastingSet, logFrame, type OpenLasting } from "./lasting-set.js";

interface LocalCallsOptions {
  open: OpenLasting;
  /** For faults of the owner. */
  onWarning: (error: unknown) => void;
  /** Ends an owner that has no sandbox. */
  end: () => void;
  /** Aborted when the owner begins to end. */
  signal: AbortSignal;
}

interface CopyCall {
  call: string;
  given: URLSearchParams;
  request: IncomingMessage;
  response: ServerResponse;
}

/** Variables of the client's environment are the largest part of a request. */
const MAX_REQUEST_BYTES = 16 * 1024 * 1024;

/** The answers to what only the user's own programs may ask for, which come through a socket that nobody else can open. */
export class LocalCalls {
  readonly #lasting: LastingSet;
  readonly #options: LocalCallsOptions;

  constructor(lasting: LastingSet, options: LocalCallsOptions) {
    this.#lasting = lasting;
    this.#options = options;
  }

  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      await this.#dispatch(request, response);
    } catch (error) {
      if (!isBrigError(error)) this.#options.onWarning(error);
      if (response.headersSent && response.getHeader("content-type") === "application/x-tar")
        return void response.destroy();
      if (response.headersSent) sendLine(response, { type: "error", ...asSentError(error) });
      else sendJson(response, refusedAnswer(error).status, { error: asSentError(error) });
      response.end();
    }
  }

  async #dispatch(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = "", url = "" } = request;
    const [path = "", query = ""] = url.split("?", 2);
    const [, , room, name = "", verb] = path.split("/").map((part) => decodeURIComponent(part));
    const call = `${method} ${room}${name === "" ? "" : "/NAME"}${verb === undefined ? "" : `/${verb}`}`;
    const lasting = this.#lasting;
    const given = new URLSearchParams(query);
    switch (call) {
      case "GET owner":
        return sendJson(response, 200, {
          ...{ version: readVersion(), pid: process.pid, held: lasting.heldCount },
          isEnding: this.#options.signal.aborted,
        });
      case "POST end":
        if (lasting.heldCount === 0) this.#options.end();
        return sendJson(response, 200, { held: lasting.heldCount });
      case "POST sandboxes":
        return await this.#open(request, response);
      case "GET sandboxes/NAME":
        return sendJson(response, 200, lasting.find(name));
      case "GET sandboxes/NAME/logs":
        return await sendLog(lasting.get(name).log, { isFollowed: given.has("follow"), response });
      case "GET sandboxes/NAME/stat":
      case "GET sandboxes/NAME/archive":
      case "PUT sandboxes/NAME/archive":
        return await this.#copy(name, { call, given, request, response });
      case "GET sandboxes/NAME/usage":
        return sendJson(response, 200, await this.#usage(name, response));
      case "POST sandboxes/NAME/stop":
        return sendJson(response, 200, { ...lasting.find(name), receipt: await lasting.stop(name) });
      case "DELETE sandboxes/NAME":
        return sendJson(response, 200, {
          ...lasting.find(name),
          receipt: await lasting.remove(name, { force: given.has("force") }),
        });
      default:
        throw notUnderstood();
    }
  }

  async #usage(name: string, response: ServerResponse): Promise<Usage> {
    const gone = new AbortController();
    response.once("close", () => gone.abort(new DOMException("the client has disconnected", "AbortError")));
    const { served } = this.#lasting.get(name);
    return await served.use(gone.signal, async ({ sandbox, signal }) => await usageOf(sandbox, signal));
  }

  async #copy(name: string, { call, given, request, response }: CopyCall): Promise<void> {
    const path = given.get("path") ?? "";
    if (!path.startsWith("/")) throw notUnderstood();
    const gone = new AbortController();
    response.once("close", () => gone.abort(new DOMException("the client has disconnected", "AbortError")));
    await this.#lasting.get(name).served.use(gone.signal, async ({ sandbox, signal }) => {
      if (call.startsWith("PUT")) {
        // Whoever stops reading early destroys what they read, which must not be the connection that the answer is for.
        const archive = request.pipe(new PassThrough());
        request.once("close", () => void (request.complete || archive.destroy(gone.signal.reason)));
        try {
          await writeArchive(sandbox, archive, { path, hasTop: given.has("top"), signal });
        } finally {
          request.unpipe(archive);
          await discardRest(request);
        }
        return sendJson(response, 200, {});
      }
      const stat = await sandbox.files.stat(path, { followSymlinks: given.has("follow"), signal });
      if (call.endsWith("stat")) return sendJson(response, 200, { type: stat.type });
      response.writeHead(200, { "content-type": "application/x-tar" });
      await pipeline(readArchive(sandbox.files, { path, top: given.get("top") ?? TOP, signal }), response);
    });
  }

  /** Sends a line for each text that is printed meanwhile, and a last one with the record or the error. */
  async #open(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const given = readOrNull(upRequestShape, parseJson((await readBody(request)).toString()));
    if (given === null) throw notUnderstood();
    const gone = new AbortController();
    response.once("close", () => gone.abort(new DOMException("the client has disconnected", "AbortError")));
    using either = new AnySignal([gone.signal, this.#options.signal]);
    response.writeHead(200, { "content-type": "application/x-ndjson" });
    const tell = (text: string) => sendLine(response, { type: "said", text });
    const { open } = this.#options;
    const record = await this.#lasting.open(given, { open, signal: either.signal, tell });
    sendLine(response, { type: "opened", ...record });
    response.end();
  }
}

function sendJson(response: ServerResponse, status: number, value: object): void {
  const bytes = Buffer.from(JSON.stringify(value));
  response
    .writeHead(status, { "content-type": "application/json", "content-length": bytes.length })
    .end(bytes);
}

function sendLine(response: ServerResponse, line: object): void {
  if (response.writable) response.write(`${JSON.stringify(line)}\n`);
}

/** Sends the output as frames; it waits while the client does not read. */
async function sendLog(
  log: OutputLog,
  { isFollowed, response }: { isFollowed: boolean; response: ServerResponse },
): Promise<void> {
  const gone = new AbortController();
  response.once("close", () => gone.abort(new DOMException("the client has disconnected", "AbortError")));
  response.writeHead(200, { "content-type": "application/octet-stream" });
  response.flushHeaders();
  const send = async (chunk: OutputChunk) => {
    if (gone.signal.aborted || response.write(logFrame(chunk))) return;
    await once(response, "drain", { signal: gone.signal });
  };
  try {
    if (isFollowed) for await (const chunk of log.follow(0, gone.signal)) await send(chunk);
    else for (const chunk of (await log.read()).chunks) await send(chunk);
  } catch (error) {
    if (!gone.signal.aborted) throw error;
  }
  response.end();
}

/** A client that is still sending would not read an answer. Resolves when it has sent all, or is gone. */
async function discardRest(request: IncomingMessage): Promise<void> {
  request.resume();
  await finished(request, { writable: false }).catch(() => undefined);
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of request as AsyncIterable<Buffer>) {
    bytes += piece.length;
    if (bytes > MAX_REQUEST_BYTES) throw notUnderstood();
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}
