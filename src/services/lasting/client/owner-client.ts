import { request as httpRequest, type IncomingMessage } from "node:http";
import { connect } from "node:net";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { BrigError, isBrigError } from "../../../errors.js";
import {
  boolean,
  number,
  object,
  positiveInteger,
  readOrNull,
  type Shaped,
  string,
} from "../../../lib/json/json-shape.js";
import { parseJson } from "../../../lib/json/parse-json.js";
import type { OnCopied, Receipt } from "../../../sandbox/index.js";
import type { Usage } from "../../serve/sandboxes/usage.js";
import { type ServiceSocket, serviceSocket, socketProblem } from "../home/service-socket.js";
import { FRAME, FrameReader } from "../wire/frames.js";
import { LINES_TYPE, readCopied, type UpRequest } from "../wire/messages.js";
import { asBrigError, notUnderstood } from "../wire/sent-error.js";

const forkedShape = object({ name: string, id: string });
const ownerShape = object({ version: string, pid: positiveInteger, held: number, isEnding: boolean });
export type OwnerState = Shaped<typeof ownerShape>;

/** How long to wait for an answer that takes the owner no work. */
const ANSWER_MS = 10_000;

/** A request to the owner. */
export interface Asked {
  method: "GET" | "POST" | "PUT" | "DELETE";
  path: string;
  /** A stream or bytes as they are, anything else as JSON. */
  body?: Readable | Uint8Array | object | undefined;
  signal: AbortSignal;
  /** Default: as long as it takes. */
  withinMs?: number | undefined;
}

/** Asks the owner of the lasting sandboxes. Errors of all: those that it answers; `serve.unreachable`; the signal's reason. */
export class OwnerClient {
  readonly socket: ServiceSocket;

  /** Error: `config.invalid` if somebody else could listen at the place of the socket. */
  constructor(brigHome: string) {
    this.socket = serviceSocket(brigHome);
    const problem = socketProblem(this.socket);
    if (problem === null) return;
    throw new BrigError(`the process that keeps the sandboxes cannot be asked safely: ${problem}`, {
      code: "config.invalid",
      hint: "set BRIG_HOME to a directory that only you can write to, and remove what is in the place of the socket",
    });
  }

  /** Null if no owner runs. */
  async state(signal: AbortSignal): Promise<OwnerState | null> {
    try {
      const answer = await this.json({ method: "GET", path: "/local/owner", signal, withinMs: ANSWER_MS });
      return readOrNull(ownerShape, answer);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof BrigError && error.code === "serve.unreachable") return null;
      throw error;
    }
  }

  /** Whether somebody listens on the socket. Much faster than asking for the state. */
  async isThere(): Promise<boolean> {
    return await new Promise((resolve) => {
      const socket = connect(this.socket.path);
      socket.once("connect", () => {
        socket.destroy();
        resolve(true);
      });
      socket.once("error", () => resolve(false));
    });
  }

  /** Ends an owner that has no sandbox. */
  async end(signal: AbortSignal): Promise<void> {
    await this.json({ method: "POST", path: "/local/end", signal, withinMs: ANSWER_MS });
  }

  /** Starts a sandbox. Resolves to its name. */
  async up(
    request: UpRequest,
    { signal, tell }: { signal: AbortSignal; tell: (text: string) => void },
  ): Promise<string> {
    let name: string | undefined;
    await this.ask({ method: "POST", path: "/local/sandboxes", body: request, signal }, async (response) => {
      for await (const line of linesOf(response)) {
        const { type, ...rest } = (parseJson(line) ?? {}) as Record<string, unknown>;
        if (type === "said") tell(`${rest.text}`);
        else if (type === "error") throw asBrigError(rest);
        else if (type === "opened") name = `${rest.name}`;
      }
    });
    if (name === undefined) throw unreachable();
    return name;
  }

  /** Starts a sandbox like this one on a copy of its workspace. Resolves to its name and id. */
  async fork(
    wanted: string,
    { name, signal, onCopied }: { name: string | undefined; signal: AbortSignal; onCopied?: OnCopied },
  ): Promise<{ name: string; id: string }> {
    const query = new URLSearchParams(name === undefined ? {} : { name });
    const path = `${sandboxPath(wanted)}/fork`;
    const asked = { method: "POST", path, query, signal } as const;
    const forked = readOrNull(forkedShape, await this.copying(asked, onCopied));
    if (forked === null) throw notUnderstood();
    return forked;
  }

  /** Ends a sandbox. What it has left; null if it had ended already. */
  async stop(
    name: string,
    { signal, onCopied }: { signal: AbortSignal; onCopied?: OnCopied },
  ): Promise<Receipt | null> {
    const asked = { method: "POST", path: `${sandboxPath(name)}/stop`, signal } as const;
    return receiptOf(await this.copying(asked, onCopied));
  }

  /** Ends a sandbox and forgets its name. */
  async remove(
    name: string,
    { force, signal, onCopied }: { force: boolean; signal: AbortSignal; onCopied?: OnCopied },
  ): Promise<Receipt | null> {
    const query = new URLSearchParams(force ? { force: "true" } : {});
    const asked = { method: "DELETE", path: sandboxPath(name), query, signal } as const;
    return receiptOf(await this.copying(asked, onCopied));
  }

  /** Calls the listener with the output of all commands, and waits for it. With `isFollowed` until the sandbox has ended. */
  async logs(
    name: string,
    { isFollowed, signal, onOutput }: { isFollowed: boolean; signal: AbortSignal; onOutput: LogListener },
  ): Promise<void> {
    const path = `${sandboxPath(name)}/logs${isFollowed ? "?follow=true" : ""}`;
    await this.ask({ method: "GET", path, signal }, async (response) => await passFrames(response, onOutput));
  }

  /** What the sandbox uses at the moment; takes half a second. */
  async usage(name: string, signal: AbortSignal): Promise<Usage> {
    return (await this.json({ method: "GET", path: `${sandboxPath(name)}/usage`, signal })) as Usage;
  }

  /** What is at a path of the sandbox: "file", "directory", "symlink" …; null if there is nothing. */
  async typeAt(
    place: SandboxPath,
    { follows, signal }: { follows: boolean; signal: AbortSignal },
  ): Promise<string | null> {
    try {
      const path = copyPath("stat", place, follows ? { follow: "true" } : {});
      const answer = readOrNull(typeShape, await this.json({ method: "GET", path, signal }));
      if (answer === null) throw notUnderstood();
      return answer.type;
    } catch (error) {
      if (isBrigError(error, "file.not-found") || isBrigError(error, "file.not-directory")) return null;
      throw error;
    }
  }

  /** Reads what is at a path of the sandbox as an archive, whose top is called `top`. */
  async readArchive(
    place: SandboxPath,
    { top, signal, take }: { top: string; signal: AbortSignal; take: (archive: Readable) => Promise<void> },
  ): Promise<void> {
    await this.ask({ method: "GET", path: copyPath("archive", place, { top }), signal }, take);
  }

  /** About how long that archive is. */
  async archiveBytes(place: SandboxPath, signal: AbortSignal): Promise<number> {
    const answer = await this.json({ method: "GET", path: copyPath("size", place, {}), signal });
    const size = readOrNull(sizeShape, answer);
    if (size === null) throw notUnderstood();
    return size.bytes;
  }

  /** Writes an archive to a path of the sandbox: its top, or with `hasTop` false all that it has. */
  async writeArchive(
    place: SandboxPath,
    { archive, hasTop, signal }: { archive: Readable; hasTop: boolean; signal: AbortSignal },
  ): Promise<void> {
    const path = copyPath("archive", place, hasTop ? { top: "true" } : {});
    await this.json({ method: "PUT", path, body: archive, signal });
  }

  /** Asks for what may copy many files, and calls `onCopied` meanwhile. An owner of an earlier version only sends the result. */
  async copying(
    { path, query = new URLSearchParams(), ...asked }: Asked & { query?: URLSearchParams },
    onCopied: OnCopied | undefined,
  ): Promise<unknown> {
    if (onCopied !== undefined) query.set("copied", "true");
    return await this.ask({ ...asked, path: `${path}?${query}` }, async (response) => {
      if (response.headers["content-type"] !== LINES_TYPE) return parseJson(await textOf(response));
      for await (const line of linesOf(response)) {
        const { type, result, ...rest } = (parseJson(line) ?? {}) as Record<string, unknown>;
        if (type === "error") throw asBrigError(rest);
        if (type === "result") return result;
        const copied = type === "copied" ? readCopied(rest) : null;
        if (copied !== null) onCopied?.(copied);
      }
      throw unreachable();
    });
  }

  async json(asked: Asked): Promise<unknown> {
    return await this.ask(asked, async (response) => parseJson(await textOf(response)));
  }

  async ask<T>(asked: Asked, read: (response: IncomingMessage) => Promise<T>): Promise<T> {
    const { signal } = asked;
    signal.throwIfAborted();
    try {
      const response = await this.#send(asked);
      if ((response.statusCode ?? 500) < 300) return await read(response);
      const sent = parseJson(await textOf(response)) as { error?: unknown } | undefined;
      throw asBrigError(sent?.error);
    } catch (error) {
      signal.throwIfAborted();
      throw error instanceof BrigError ? error : unreachable(error);
    }
  }

  #send({ method, path, body, signal, withinMs }: Asked): Promise<IncomingMessage> {
    const isStream = body instanceof Readable;
    const isBytes = body instanceof Uint8Array;
    const bytes = body === undefined || isStream ? null : isBytes ? body : Buffer.from(JSON.stringify(body));
    return new Promise((resolve, reject) => {
      const sent = httpRequest({
        ...{ socketPath: this.socket.path, method, path, signal, agent: false, timeout: withinMs },
        headers: {
          host: "localhost",
          ...(bytes !== null && {
            "content-type": isBytes ? "application/octet-stream" : "application/json",
            "content-length": bytes.length,
          }),
        },
      });
      sent.once("response", resolve);
      sent.once("timeout", () => sent.destroy(new Error("there was no answer in time")));
      sent.on("error", reject);
      if (!isStream) return void sent.end(bytes);
      // The owner may answer before it has read everything, if it refuses it.
      pipeline(body, sent).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== "EPIPE" && error.code !== "ECONNRESET") reject(error);
      });
    });
  }
}

export type LogListener = (stream: "stdout" | "stderr", bytes: Buffer) => Promise<void>;

/** Error: `serve.failed` for what is no output. */
export async function passFrames(source: AsyncIterable<Buffer>, onOutput: LogListener): Promise<void> {
  const reader = new FrameReader();
  for await (const piece of source) {
    const frames = reader.push(piece);
    if (frames === null) throw notUnderstood();
    for (const { type, payload } of frames)
      await onOutput(type === FRAME.stderr ? "stderr" : "stdout", payload);
  }
}

export interface SandboxPath {
  sandbox: string;
  /** Absolute. */
  path: string;
}

const typeShape = object({ type: string });
const sizeShape = object({ bytes: number });

function copyPath(verb: string, { sandbox, path }: SandboxPath, more: Record<string, string>): string {
  return `${sandboxPath(sandbox)}/${verb}?${new URLSearchParams({ path, ...more })}`;
}

export function sandboxPath(name: string): string {
  return `/local/sandboxes/${encodeURIComponent(name)}`;
}

export function unreachable(cause?: unknown): BrigError {
  return new BrigError("the process that keeps the sandboxes does not answer", {
    code: "serve.unreachable",
    hint: "its log is service.log in $BRIG_HOME; brig ps says which sandboxes there are",
    cause,
  });
}

function receiptOf(answer: unknown): Receipt | null {
  if (typeof answer !== "object" || answer === null || !("receipt" in answer)) throw notUnderstood();
  return answer.receipt as Receipt | null;
}

async function textOf(response: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of response) pieces.push(piece as Buffer);
  return Buffer.concat(pieces).toString();
}

export async function* linesOf(response: IncomingMessage): AsyncGenerator<string> {
  let rest = "";
  const decoder = new TextDecoder();
  for await (const piece of response) {
    const lines = (rest + decoder.decode(piece as Buffer, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
}
