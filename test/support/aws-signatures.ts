import { createHash, createHmac } from "node:crypto";

export interface ReceivedRequest {
  method: string;
  /** As it was on the wire. */
  url: string;
  /** Names and values in turn. */
  rawHeaders: readonly string[];
  body: Buffer;
}

interface Keys {
  accessKeyId: string;
  secretAccessKey: string;
}

const CLOCK_SKEW_MS = 300_000;
/** Services that encode paths once, and do not change them. */
const KEEPS_PATHS = new Set(["s3", "s3express"]);

/**
 * What AWS's documentation of Signature Version 4 says a server checks, written from it: the signature of the request
 * as it arrived, its time, its body, and that the headers are signed which have to be. Returns what is wrong.
 */
export function awsProblem(request: ReceivedRequest, keys: Keys, nowMs = Date.now()): string | null {
  const headers = joined(request.rawHeaders);
  const authorization = headers.get("authorization") ?? "";
  const [, id, date, region, service, names = "", signature] =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/([^/]+)\/aws4_request, ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/.exec(
      authorization,
    ) ?? [];
  if (date === undefined || region === undefined || service === undefined) return "no signature";
  if (id !== keys.accessKeyId) return "unknown access key";
  const time = headers.get("x-amz-date") ?? "";
  if (!time.startsWith(date) || Math.abs(timeOf(time) - nowMs) > CLOCK_SKEW_MS) return "wrong time";
  const signed = names.split(";");
  const required = [...headers.keys()].filter((name) => name === "host" || name.startsWith("x-amz-"));
  const unsigned = required.find((name) => !signed.includes(name));
  if (unsigned !== undefined) return `${unsigned} is not signed`;
  const missing = signed.find((name) => !headers.has(name));
  if (missing !== undefined) return `${missing} is signed, but not there`;
  const checksum = headers.get("x-amz-content-sha256");
  if (checksum === undefined && KEEPS_PATHS.has(service)) return "no x-amz-content-sha256";
  const actual = sha256(request.body);
  if (checksum !== undefined && /^[0-9a-f]{64}$/.test(checksum) && checksum !== actual) return "wrong body";
  const [path = "", query = ""] = splitOnce(request.url, "?");
  const canonical = [
    request.method,
    KEEPS_PATHS.has(service) ? encodeAgain(path) : encodePath(normalised(path)),
    canonicalQuery(query),
    ...signed.map((name) => `${name}:${(headers.get(name) ?? "").trim().replace(/ +/g, " ")}`),
    "",
    names,
    checksum ?? actual,
  ].join("\n");
  const scope = [date, region, service, "aws4_request"];
  const text = ["AWS4-HMAC-SHA256", time, scope.join("/"), sha256(canonical)].join("\n");
  const key = scope.reduce<Buffer>(
    (last, part) => hmac(last, part),
    Buffer.from(`AWS4${keys.secretAccessKey}`),
  );
  return hmac(key, text).toString("hex") === signature ? null : `wrong signature of:\n${canonical}`;
}

function joined(rawHeaders: readonly string[]): Map<string, string> {
  const headers = new Map<string, string>();
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!.toLowerCase();
    const earlier = headers.get(name);
    const value = rawHeaders[at + 1]!;
    headers.set(name, earlier === undefined ? value : `${earlier},${value}`);
  }
  return headers;
}

function timeOf(text: string): number {
  return Date.parse(text.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, "$1-$2-$3T$4:$5:$6Z"));
}

function normalised(path: string): string {
  const parts: string[] = [];
  for (const part of path.split("/").slice(1)) {
    if (part === "..") parts.pop();
    else if (part !== "." && part !== "") parts.push(part);
  }
  const end = path.endsWith("/") && parts.length > 0 ? "/" : "";
  return `/${parts.join("/")}${end}`;
}

/** Of what is already encoded once: the documentation asks for it twice, but for S3. */
function encodePath(path: string): string {
  return path.split("/").map(encode).join("/");
}

function encodeAgain(path: string): string {
  return path
    .split("/")
    .map((part) => encode(decodeURIComponent(part)))
    .join("/");
}

function canonicalQuery(query: string): string {
  if (query === "") return "";
  return query
    .split("&")
    .map((pair) => splitOnce(pair, "=").map((text) => encode(decodeURIComponent(text ?? ""))))
    .map(([name = "", value = ""]) => [name, value] as const)
    .sort((one, other) => compare(one[0], other[0]) || compare(one[1], other[1]))
    .map(([name, value]) => `${name}=${value}`)
    .join("&");
}

function splitOnce(text: string, mark: string): [string, string] {
  const at = text.indexOf(mark);
  return at === -1 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}

/** Every byte but those that RFC 3986 does not reserve. */
function encode(text: string): string {
  return [...Buffer.from(text)]
    .map((byte) => String.fromCharCode(byte))
    .map((character) =>
      /[A-Za-z0-9\-._~]/.test(character)
        ? character
        : `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`,
    )
    .join("");
}

function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

function sha256(data: string | Buffer): string {
  return createHash("sha256").update(data).digest("hex");
}

function hmac(key: Buffer, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest();
}
