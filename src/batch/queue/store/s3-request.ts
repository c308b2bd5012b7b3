import { createHash } from "node:crypto";
import { type IncomingMessage, request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import type { Readable } from "node:stream";
import { AwsV4Signer } from "aws4fetch";

/** A bucket, and who asks for it. */
export interface S3Server {
  /** URL without a slash at its end. */
  bucketUrl: string;
  region: string;
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken: string | undefined;
}

export interface S3Request {
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
export async function sendSigned(server: S3Server, given: S3Request): Promise<IncomingMessage> {
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
