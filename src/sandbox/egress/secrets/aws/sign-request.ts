import { AwsV4Signer } from "aws4fetch";
import type { SigningProblem } from "../../rules/denial.js";
import type { AwsSigning } from "./find-aws-placeholders.js";
import type { BodyReading } from "./read-body.js";

export interface UnsignedRequest {
  method: string;
  isTls: boolean;
  /** Value of the `Host` header. */
  authority: string;
  path: string;
  /** Names and values in turn, as they are sent on. */
  headers: readonly string[];
  /** Reads the whole body, for signatures that need its checksum. */
  readBody(): Promise<BodyReading>;
}

export type SignedRequest =
  /** `body` is null if it has not been read. */
  | { kind: "signed"; headers: string[]; body: Buffer | null }
  | { kind: "problem"; problem: SigningProblem }
  /** The program went away before its request was whole. */
  | { kind: "ended" };

/** Services whose paths are encoded once in signatures, and whose requests say the checksum of their body. */
const LIKE_S3 = new Set(["s3", "s3express", "s3-object-lambda", "s3-outposts"]);
/** Values that a request can give for its body, besides its SHA-256 in hex, without each part of it being signed. */
const UNSIGNED_BODIES = new Set(["UNSIGNED-PAYLOAD", "STREAMING-UNSIGNED-PAYLOAD-TRAILER"]);
/** Headers that the signature replaces. */
const REPLACED = new Set(["authorization", "x-amz-date", "x-amz-security-token"]);

/**
 * Signs a request anew, with the real keys and the time of this machine. What the program signed of it is signed again,
 * besides headers that are not sent on.
 */
export async function signRequest(
  { secret: { keys }, authorization: { region, service, signedHeaders } }: AwsSigning,
  request: UnsignedRequest,
): Promise<SignedRequest> {
  const { method, isTls, authority, path, headers } = request;
  const url = `${isTls ? "https" : "http"}://${authority}${path}`;
  const isS3 = service === "s3";
  const isLikeS3 = LIKE_S3.has(service);
  // Characters that the library takes for a space, for a slash or for one slash, and that services may read in another way.
  const unclear = isS3 ? /\+|%2f/i : isLikeS3 ? /\/\// : null;
  if (!isSameInUrl(url, path, unclear)) return { kind: "problem", problem: { kind: "path" } };
  const signed = new Map<string, string>();
  for (let at = 0; at < headers.length; at += 2) {
    const name = headers[at]?.toLowerCase() ?? "";
    if (REPLACED.has(name) || name === "host") continue;
    if (!signedHeaders.includes(name) && !name.startsWith("x-amz-")) continue;
    const value = headers[at + 1] ?? "";
    if (signed.has(name) || !/^[\t\x20-\x7e]*$/.test(value))
      return { kind: "problem", problem: { kind: "header", header: name } };
    signed.set(name, value);
  }
  const credentials = await keys.valid();
  if (credentials === null) return { kind: "problem", problem: { kind: "expired" } };
  const body = await bodyToSign(request, { checksum: signed.get("x-amz-content-sha256"), isLikeS3 });
  if (body.kind !== "body") return body;
  const { accessKeyId, secretAccessKey, sessionToken } = credentials;
  const result = await new AwsV4Signer({
    ...{ method, url, accessKeyId, secretAccessKey, region, service },
    ...(sessionToken !== null && { sessionToken }),
    headers: Object.fromEntries(signed),
    // Exactly those that were given, also such as Range, which the library leaves out otherwise.
    allHeaders: true,
    singleEncode: isLikeS3 && !isS3,
    ...(body.data !== null && { body: new Uint8Array(body.data) }),
  }).sign();
  const isKept = (name: string) => !REPLACED.has(name) && name !== "host" && !result.headers.has(name);
  const others = headers.filter((_, at) => isKept(headers[at - (at % 2)]?.toLowerCase() ?? ""));
  // The host as it was signed: in lower case, and without the usual port.
  const added = ["Host", result.url.host, ...[...result.headers].flat()];
  return { kind: "signed", headers: [...added, ...others], body: body.data };
}

/** Whether the path is signed as it is sent: a URL has no `..`, for example. */
function isSameInUrl(url: string, path: string, unclear: RegExp | null): boolean {
  if (!path.startsWith("/") || path.includes("#") || !URL.canParse(url)) return false;
  const [written = ""] = path.split("?", 1);
  return new URL(url).pathname === written && unclear?.test(written) !== true;
}

/** `data` is null for a body that needs no reading, because its checksum is in a header or there is none. */
async function bodyToSign(
  { readBody }: Pick<UnsignedRequest, "readBody">,
  { checksum, isLikeS3 }: { checksum: string | undefined; isLikeS3: boolean },
): Promise<{ kind: "body"; data: Buffer | null } | Exclude<SignedRequest, { kind: "signed" }>> {
  if (checksum !== undefined) {
    if (/^[0-9a-f]{64}$/.test(checksum) || UNSIGNED_BODIES.has(checksum)) return { kind: "body", data: null };
    return { kind: "problem", problem: { kind: "signed-chunks" } };
  }
  if (isLikeS3) return { kind: "body", data: null };
  const read = await readBody();
  if (read.kind === "too-large")
    return { kind: "problem", problem: { kind: "body", maxBytes: read.maxBytes } };
  if (read.kind === "ended") return read;
  return { kind: "body", data: read.data };
}
