import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { PassThrough } from "node:stream";
import { finished, pipeline } from "node:stream/promises";
import { isBrigError } from "../../../errors.js";
import { readOrNull } from "../../../lib/json/json-shape.js";
import { parseJson } from "../../../lib/json/parse-json.js";
import { AnySignal } from "../../../lib/time/any-signal.js";
import type { OnCopied, Sandbox } from "../../../sandbox/index.js";
import { readVersion } from "../../../version.js";
import { archiveBytes, readArchive, TOP, writeArchive } from "../../serve/files/sandbox-archive.js";
import { refusedAnswer } from "../../serve/http/refusal.js";
import type { OutputChunk, OutputLog } from "../../serve/processes/output-log.js";
import type { InUse } from "../../serve/sandboxes/served-sandbox.js";
import { usageOf } from "../../serve/sandboxes/usage.js";
import type { RemoteSandboxRecord } from "../../serve/wire/schemas.js";
import { LINES_TYPE, upRequestShape } from "../wire/messages.js";
import { asSentError, notUnderstood } from "../wire/sent-error.js";
import { answerFileCall, FILE_CALLS } from "./file-calls.js";
import { type LastingSet, logFrame, type OpenLasting } from "./lasting-set.js";
import { readBody, sendJson } from "./local-answers.js";
import { placeOf } from "./sandbox-place.js";

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
      if (response.headersSent && response.getHeader("content-type") !== LINES_TYPE)
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
    if (name !== "" && FILE_CALLS.has(`${method} ${verb}`))
      return await this.#use(name, response, async ({ sandbox: { files }, signal }) =>
        answerFileCall(files, { call: `${method} ${verb}`, given, request, response, signal }),
      );
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
      case "GET sandboxes/NAME/place":
        return await this.#use(name, response, ({ sandbox, record }) =>
          sendJson(response, 200, placeOf(sandbox, { record, egressCount: lasting.get(name).egress.count })),
        );
      case "GET sandboxes/NAME/egress":
        return sendJson(
          response,
          200,
          lasting.get(name).egress.after(Number(given.get("after")), given.get("calls") ?? ""),
        );
      case "GET sandboxes/NAME/diff":
        return await this.#use(name, response, ({ sandbox, signal }) =>
          sendDiff(sandbox, { given, response, signal }),
        );
      case "POST sandboxes/NAME/apply":
        return await this.#use(name, response, async ({ sandbox, signal }) => {
          const paths = given.has("path") ? given.getAll("path") : undefined;
          const options = { paths, dryRun: given.has("dry"), signal };
          await sendCopying({ given, response }, (onCopied) => sandbox.apply({ ...options, onCopied }));
        });
      case "POST sandboxes/NAME/point":
        return await this.#use(name, response, async ({ sandbox, signal }) =>
          sendJson(response, 200, { point: await sandbox.restorePoint({ signal }) }),
        );
      case "POST sandboxes/NAME/fork":
        return await this.#use(name, response, async ({ signal }) =>
          sendCopying({ given, response }, (onCopied) =>
            lasting.fork(name, given.get("name"), { signal, onCopied }),
          ),
        );
      case "POST sandboxes/NAME/undo":
        return await this.#use(name, response, async ({ sandbox, signal }) =>
          sendCopying({ given, response }, async (onCopied) => ({
            undone: await sandbox.undo({ signal, onCopied }),
          })),
        );
      case "GET sandboxes/NAME/archive":
      case "PUT sandboxes/NAME/archive":
        return await this.#copy(name, { call, given, request, response });
      case "GET sandboxes/NAME/size":
        return await this.#use(name, response, async ({ sandbox: { files }, signal }) =>
          sendJson(response, 200, {
            bytes: await archiveBytes(files, { path: given.get("path") ?? "", signal }),
          }),
        );
      case "GET sandboxes/NAME/usage":
        return await this.#use(name, response, async ({ sandbox, signal }) =>
          sendJson(response, 200, await usageOf(sandbox, signal)),
        );
      case "POST sandboxes/NAME/stop":
        return await sendCopying({ given, response }, async (onCopied) => ({
          ...lasting.find(name),
          receipt: await lasting.stop(name, { onCopied }),
        }));
      case "DELETE sandboxes/NAME":
        return await sendCopying({ given, response }, async (onCopied) => ({
          ...lasting.find(name),
          receipt: await lasting.remove(name, { force: given.has("force"), onCopied }),
        }));
      default:
        throw notUnderstood();
    }
  }

  /** Calls `run` while the sandbox is not idle, with a signal that is aborted when the client goes. */
  async #use(
    name: string,
    response: ServerResponse,
    run: (inUse: InUse & { record: RemoteSandboxRecord }) => unknown,
  ): Promise<void> {
    const gone = new AbortController();
    response.once("close", () => gone.abort(new DOMException("the client has disconnected", "AbortError")));
    const { served } = this.#lasting.get(name);
    await served.use(gone.signal, async (inUse) => void (await run({ ...inUse, record: served.record })));
  }

  async #copy(name: string, { call, given, request, response }: CopyCall): Promise<void> {
    const path = given.get("path") ?? "";
    if (!path.startsWith("/")) throw notUnderstood();
    await this.#use(name, response, async ({ sandbox, signal }) => {
      if (call.startsWith("PUT")) {
        // Whoever stops reading early destroys what they read, which must not be the connection that the answer is for.
        const archive = request.pipe(new PassThrough());
        request.once("close", () => void (request.complete || archive.destroy(signal.reason)));
        try {
          await writeArchive(sandbox, archive, { path, hasTop: given.has("top"), signal });
        } finally {
          request.unpipe(archive);
          await discardRest(request);
        }
        return sendJson(response, 200, {});
      }
      await sandbox.files.stat(path, { followSymlinks: false, signal });
      response.writeHead(200, { "content-type": "application/x-tar" });
      await pipeline(readArchive(sandbox.files, { path, top: given.get("top") ?? TOP, signal }), response);
    });
  }

  /** Sends a line for each text that is printed meanwhile, and a last one with the record or the error. */
  async #open(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const given = readOrNull(
      upRequestShape,
      parseJson((await readBody(request, MAX_REQUEST_BYTES)).toString()),
    );
    if (given === null) throw notUnderstood();
    const gone = new AbortController();
    response.once("close", () => gone.abort(new DOMException("the client has disconnected", "AbortError")));
    using either = new AnySignal([gone.signal, this.#options.signal]);
    response.setHeader("content-type", LINES_TYPE).writeHead(200);
    const tell = (text: string) => sendLine(response, { type: "said", text });
    const { open } = this.#options;
    const record = await this.#lasting.open(given, { open, signal: either.signal, tell });
    sendLine(response, { type: "opened", ...record });
    response.end();
  }
}

function sendLine(response: ServerResponse, line: object): void {
  if (response.writable) response.write(`${JSON.stringify(line)}\n`);
}

/** How often whoever waits is told how much has been copied. */
const COPIED_EVERY_MS = 250;

/** Sends the result. If the client asks for it, lines say before that how much has been copied, and the last one has the result. */
async function sendCopying(
  { given, response }: Pick<CopyCall, "given" | "response">,
  run: (onCopied: OnCopied | undefined) => Promise<object>,
): Promise<void> {
  if (!given.has("copied")) return sendJson(response, 200, await run(undefined));
  const send = (line: object) => {
    if (!response.headersSent) response.setHeader("content-type", LINES_TYPE).writeHead(200);
    sendLine(response, line);
  };
  let saidAt = Number.NEGATIVE_INFINITY;
  const result = await run((copied) => {
    const isLast = copied.files === copied.totalFiles;
    if (!isLast && performance.now() - saidAt < COPIED_EVERY_MS) return;
    saidAt = performance.now();
    send({ type: "copied", ...copied });
  });
  send({ type: "result", result });
  response.end();
}

/** Sends a line for each change, and a last one with the counts. */
async function sendDiff(
  sandbox: Sandbox,
  { given, response, signal }: { given: URLSearchParams; response: ServerResponse; signal: AbortSignal },
): Promise<void> {
  const number = (name: string) => (given.has(name) ? Number(given.get(name)) : undefined);
  const { count, tooLarge, notEntered } = await sandbox.diff({
    paths: given.has("path") ? given.getAll("path") : undefined,
    patches: !given.has("nopatches"),
    ...{ maxFileBytes: number("maxfile"), maxPatchBytes: number("maxpatch"), signal },
    async onChange({ pathBytes, ...change }) {
      if (!response.headersSent) response.setHeader("content-type", LINES_TYPE).writeHead(200);
      const pathBase64 = Buffer.from(pathBytes).toString("base64");
      if (response.write(`${JSON.stringify({ type: "change", ...change, pathBase64 })}\n`)) return;
      await once(response, "drain", { signal });
    },
  });
  if (!response.headersSent) response.setHeader("content-type", LINES_TYPE).writeHead(200);
  sendLine(response, { type: "diff", count, tooLarge, notEntered });
  response.end();
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
