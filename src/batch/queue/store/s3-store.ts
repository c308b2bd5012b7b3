import { createReadStream, createWriteStream } from "node:fs";
import type { IncomingMessage } from "node:http";
import { pipeline } from "node:stream/promises";
import { BrigError } from "../../../errors.js";
import { errnoOf, systemReason } from "../../../lib/errno.js";
import { pause } from "../../../lib/time/pause.js";
import { type FetchLimits, type ObjectStore, type StoredFile, tooLarge } from "./object-store.js";
import { type S3Request, type S3Server, sendSigned } from "./s3-request.js";

const TRIES = 7;
const FIRST_WAIT_MS = 500;

/** A bucket of a server with the API of S3. */
export class S3Store implements ObjectStore {
  readonly name: string;
  readonly #server: S3Server;
  readonly #prefix: string;
  readonly #firstWaitMs: number;

  /** `prefix` is empty or ends with a slash. Each wait for a busy server is twice as long as the one before. */
  constructor(
    server: S3Server,
    { prefix, firstWaitMs = FIRST_WAIT_MS }: { prefix: string; firstWaitMs?: number },
  ) {
    this.#server = server;
    this.#prefix = prefix;
    this.#firstWaitMs = firstWaitMs;
    this.name = `${server.bucketUrl}/${prefix}`;
  }

  async put(key: string, { path, sizeBytes, sha256, signal }: StoredFile): Promise<"stored" | "present"> {
    if (await this.has(key, signal)) return "present";
    const request = (headers: Record<string, string>): S3Request => ({
      method: "PUT",
      key: this.#prefix + key,
      headers: { ...headers, "content-length": String(sizeBytes) },
      body: () => createReadStream(path),
      bodySha256: sha256,
      signal,
    });
    const first = await this.#send(request({ "if-none-match": "*" }), [200, 412, 501]);
    await drain(first);
    if (first.statusCode === 412) return "present";
    // A server that does not know the condition. What is there already then gives way to what is as good.
    if (first.statusCode === 501) await drain(await this.#send(request({}), [200]));
    return "stored";
  }

  async get(key: string, file: string, { maxBytes, signal }: FetchLimits): Promise<"fetched" | "missing"> {
    const answer = await this.#send({ method: "GET", key: this.#prefix + key, signal }, [200, 404]);
    if (answer.statusCode === 404) {
      await drain(answer);
      return "missing";
    }
    await pipeline(answer, limited(maxBytes, key, this.name), createWriteStream(file, { flags: "wx" }), {
      signal,
    });
    if (answer.complete) return "fetched";
    throw failed(this.name, "the answer broke off");
  }

  async has(key: string, signal?: AbortSignal): Promise<boolean> {
    const answer = await this.#send({ method: "HEAD", key: this.#prefix + key, signal }, [200, 404]);
    await drain(answer);
    return answer.statusCode === 200;
  }

  async remove(key: string): Promise<void> {
    await drain(await this.#send({ method: "DELETE", key: this.#prefix + key }, [200, 204, 404]));
  }

  /** Tries again what a busy server, or a broken connection, has not answered. Error: `store.failed`. */
  async #send(request: S3Request, expected: readonly number[]): Promise<IncomingMessage> {
    for (let tries = 1; ; tries++) {
      const answer = await sendSigned(this.#server, request).catch((error: unknown) => {
        request.signal?.throwIfAborted();
        if (errnoOf(error) === undefined || tries === TRIES)
          throw failed(this.name, systemReason(error), error);
        return null;
      });
      if (answer !== null) {
        const status = answer.statusCode ?? 0;
        if (expected.includes(status)) return answer;
        await drain(answer);
        const isPassing = status >= 500 || status === 429 || status === 409;
        if (!isPassing || tries === TRIES) throw failed(this.name, `${request.method}: HTTP ${status}`);
      }
      await pause(this.#firstWaitMs * 2 ** (tries - 1), request.signal);
    }
  }
}

/** An answer that is not read would hold its connection. */
async function drain(answer: IncomingMessage): Promise<void> {
  answer.resume();
  if (!answer.readableEnded)
    await new Promise<void>((resolve) => {
      answer.once("close", resolve);
    });
}

function limited(maxBytes: number, key: string, name: string) {
  return async function* (source: AsyncIterable<Buffer>) {
    let bytes = 0;
    for await (const chunk of source) {
      bytes += chunk.length;
      if (bytes > maxBytes) throw tooLarge(key, name);
      yield chunk;
    }
  };
}

function failed(store: string, reason: string, cause?: unknown): BrigError {
  return new BrigError(`cannot use the store ${store}: ${reason}`, {
    code: "store.failed",
    hint: "check the bucket, AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    cause,
  });
}
