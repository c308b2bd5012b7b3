import { createHash, randomBytes } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { access, link, open, rename, rm, stat } from "node:fs/promises";
import { type IncomingMessage, request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { dirname, join, resolve } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { AwsV4Signer } from "aws4fetch";
import { BrigError } from "../../errors.js";
import { errnoOf, systemReason } from "../../lib/errno.js";
import { makeDirectory } from "../../lib/files/make-directory.js";
import { pause } from "../../lib/time/pause.js";

export interface OpenStoreOptions {
  /** Relative directories begin here. */
  cwd: string;
  /** Variables for a bucket: the usual `AWS_…` ones. */
  variables: Readonly<Record<string, string | undefined>>;
}

const DEFAULT_REGION = "us-east-1";

/** A directory, or `s3://BUCKET[/PREFIX]`. Errors: `usage.invalid`, `store.failed`. */
export async function openStore(address: string, { cwd, variables }: OpenStoreOptions): Promise<ObjectStore> {
  if (!/^[a-z0-9+]+:\/\//i.test(address)) return await DirectoryStore.open(resolve(cwd, address));
  const [, bucket, prefix = ""] =
    /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/([^?#]*))?$/.exec(address) ?? [];
  if (bucket === undefined)
    throw invalid(`${JSON.stringify(address)} is neither a directory nor s3://BUCKET/PREFIX`);
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = variables;
  if (accessKeyId === undefined || secretAccessKey === undefined)
    throw invalid("there are no keys for the bucket", "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY");
  const region = variables.AWS_REGION ?? variables.AWS_DEFAULT_REGION ?? DEFAULT_REGION;
  const bucketUrl = bucketUrlOf(bucket, { region, variables });
  const sessionToken = variables.AWS_SESSION_TOKEN;
  const inside = prefix.replace(/\/+$/, "");
  return new S3Store(
    { bucketUrl, region, accessKeyId, secretAccessKey, sessionToken },
    { prefix: inside === "" ? "" : `${inside}/` },
  );
}

/** Servers other than Amazon's have their buckets in the path. */
function bucketUrlOf(
  bucket: string,
  { region, variables }: { region: string } & Pick<OpenStoreOptions, "variables">,
): string {
  const endpoint = variables.AWS_ENDPOINT_URL_S3 ?? variables.AWS_ENDPOINT_URL;
  if (endpoint === undefined) return `https://${bucket}.s3.${region}.amazonaws.com`;
  const url = URL.canParse(endpoint) ? new URL(endpoint) : null;
  if (url === null || !/^https?:$/.test(url.protocol) || url.search !== "" || url.username !== "")
    throw invalid("AWS_ENDPOINT_URL is not the address of a server, such as https://storage.example.org");
  return `${url.origin}${url.pathname.replace(/\/+$/, "")}/${bucket}`;
}

function invalid(problem: string, hint?: string): BrigError {
  return new BrigError(`the store of the results cannot be used: ${problem}`, {
    code: "usage.invalid",
    hint: hint ?? "give --results a directory that all machines share, or a bucket",
  });
}

export interface ObjectStore {
  /** Name for messages. */
  readonly name: string;
  /** Puts a file under a name, whole or not at all. "present": there was one already, and it stays. */
  put(key: string, object: StoredFile): Promise<"stored" | "present">;
  /** Writes the object to a file, which must not exist. */
  get(key: string, file: string, limits: FetchLimits): Promise<"fetched" | "missing">;
  has(key: string, signal?: AbortSignal): Promise<boolean>;
  /** An object that is not there is none to remove. */
  remove(key: string): Promise<void>;
}

export interface StoredFile {
  path: string;
  sizeBytes: number;
  /** SHA-256 of its content in hex. */
  sha256: string;
  signal?: AbortSignal | undefined;
}

interface FetchLimits {
  maxBytes: number;
  signal?: AbortSignal | undefined;
}

function tooLarge(key: string, store: string): BrigError {
  return new BrigError(`${key} in ${store} is larger than brig accepts`, {
    code: "store.failed",
    hint: "let tasks declare smaller artifacts",
  });
}

/** A directory that all machines share. */
class DirectoryStore implements ObjectStore {
  readonly name: string;
  readonly #root: string;

  private constructor(root: string) {
    this.#root = root;
    this.name = root;
  }

  /** Makes the directory if it is missing. Error: `store.failed`. */
  static async open(root: string): Promise<DirectoryStore> {
    const store = new DirectoryStore(root);
    await store.#attempt(() => makeDirectory(root));
    return store;
  }

  async put(key: string, { path: from, signal }: StoredFile): Promise<"stored" | "present"> {
    return await this.#attempt(async () => {
      const path = this.#path(key);
      if (await this.has(key)) return "present";
      await makeDirectory(dirname(path));
      const unfinished = `${path}.${randomBytes(6).toString("hex")}.new`;
      try {
        await pipeline(createReadStream(from), createWriteStream(unfinished, { flags: "wx" }), { signal });
        await syncFile(unfinished);
        return await publish(unfinished, path);
      } finally {
        await rm(unfinished, { force: true });
      }
    });
  }

  async get(key: string, file: string, { maxBytes, signal }: FetchLimits): Promise<"fetched" | "missing"> {
    return await this.#attempt(async () => {
      const path = this.#path(key);
      const found = await stat(path).catch((error) => {
        if (errnoOf(error) === "ENOENT") return null;
        throw error;
      });
      if (found === null) return "missing";
      if (found.size > maxBytes) throw tooLarge(key, this.name);
      await pipeline(createReadStream(path), createWriteStream(file, { flags: "wx" }), { signal });
      return "fetched";
    });
  }

  async has(key: string): Promise<boolean> {
    return await access(this.#path(key)).then(
      () => true,
      () => false,
    );
  }

  async remove(key: string): Promise<void> {
    await this.#attempt(() => rm(this.#path(key), { force: true }));
  }

  async #attempt<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (errnoOf(error) === undefined) throw error;
      throw new BrigError(`cannot use the directory ${this.#root}: ${systemReason(error)}`, {
        code: "store.failed",
        hint: "all machines need to be able to write there: see --results",
        errno: errnoOf(error),
        cause: error,
      });
    }
  }

  #path(key: string): string {
    return join(this.#root, key);
  }
}

/** A link is made only if there is no such name yet. Where there are no links, a later file takes the place of the first. */
async function publish(unfinished: string, path: string): Promise<"stored" | "present"> {
  try {
    await link(unfinished, path);
  } catch (error) {
    if (errnoOf(error) === "EEXIST") return "present";
    if (!["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"].includes(errnoOf(error) ?? "")) throw error;
    await rename(unfinished, path);
  }
  return "stored";
}

async function syncFile(path: string): Promise<void> {
  const file = await open(path, "r+");
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

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

/** A bucket, and who asks for it. */
interface S3Server {
  /** URL without a slash at its end. */
  bucketUrl: string;
  region: string;
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken: string | undefined;
}

interface S3Request {
  method: "GET" | "HEAD" | "PUT" | "DELETE";
  key: string;
  headers?: Record<string, string> | undefined;
  body?: (() => Readable) | undefined;
  /** Checksum in hex; needed with a body. */
  bodySha256?: string | undefined;
  signal?: AbortSignal | undefined;
}

/** A connection that says nothing for so long is dead. */
const SILENCE_MS = 60_000;
const emptySha256 = createHash("sha256").digest("hex");

/**
 * Signs a request by AWS Signature Version 4 and sends it. `fetch` is not used, because it sends a stream only in chunks of
 * unknown number, which S3 refuses. Errors: those of the connection.
 */
async function sendSigned(server: S3Server, given: S3Request): Promise<IncomingMessage> {
  const { method, key, headers = {}, body, bodySha256 = emptySha256, signal } = given;
  const { accessKeyId, secretAccessKey, sessionToken, region } = server;
  const signed = await new AwsV4Signer({
    method,
    url: `${server.bucketUrl}/${key.split("/").map(encodeURIComponent).join("/")}`,
    headers: { ...headers, "x-amz-content-sha256": bodySha256 },
    accessKeyId,
    secretAccessKey,
    ...(sessionToken === undefined ? {} : { sessionToken }),
    region,
    service: "s3",
  }).sign();
  const { url } = signed;
  const send = url.protocol === "https:" ? requestHttps : requestHttp;
  return await new Promise((resolve, reject) => {
    const request = send(url, { method, headers: Object.fromEntries(signed.headers), signal });
    request.setTimeout(SILENCE_MS, () => request.destroy(new SilentServer()));
    request.on("error", reject).on("response", resolve);
    if (body === undefined) request.end();
    else
      body()
        .on("error", (error) => request.destroy(error))
        .pipe(request);
  });
}

class SilentServer extends Error {
  readonly code = "ETIMEDOUT";

  constructor() {
    super("the server says nothing");
  }
}
