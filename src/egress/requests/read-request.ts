import type { IncomingHttpHeaders } from "node:http";

/** A request in the one way in which it can be read. */
export interface ReadRequest {
  method: string;
  /** Decoded, without `.` and `..`. */
  path: string;
  /** Decoded. */
  query: readonly { name: string; value: string }[];
}

export type RequestReading = { kind: "read"; request: ReadRequest } | Ambiguous;

interface Ambiguous {
  kind: "ambiguous";
  what: string;
}

/** Some servers take one of these for the method. */
const METHOD_HEADERS = ["x-http-method-override", "x-http-method", "x-method-override"];

/** `target` is a path, with a query or without. */
export function readRequest(
  method: string,
  target: string,
  headers: Readonly<IncomingHttpHeaders>,
): RequestReading {
  const override = METHOD_HEADERS.find((name) => headers[name] !== undefined);
  if (override !== undefined) return ambiguous(`its header ${override} names another method`);
  if (!/^\/[\x21-\x7e]*$/.test(target)) return ambiguous("its path does not begin with /, or is not ASCII");
  const mark = target.indexOf("?");
  const rawPath = mark === -1 ? target : target.slice(0, mark);
  const path = readPath(rawPath);
  if (path.kind === "ambiguous") return path;
  const pairs = mark === -1 ? [] : target.slice(mark + 1).split("&");
  const query: { name: string; value: string }[] = [];
  for (const pair of pairs.filter((one) => one !== "")) {
    const [rawName = "", ...rest] = pair.split("=");
    const name = decodeOnce(rawName.replaceAll("+", " "));
    const value = decodeOnce(rest.join("=").replaceAll("+", " "));
    if (name === null || value === null) return ambiguous("a parameter of its URL is not properly encoded");
    query.push({ name, value });
  }
  return { kind: "read", request: { method, path: path.path, query } };
}

function readPath(raw: string): { kind: "path"; path: string } | Ambiguous {
  if (/[\\#]/.test(raw)) return ambiguous("its path has a backslash or #");
  if (raw.includes("//")) return ambiguous("its path has two slashes in a row");
  if (/%(?:2f|5c)/i.test(raw)) return ambiguous("its path has an encoded slash or backslash");
  if (raw.includes("%25")) return ambiguous("its path has an encoded %, so it may be encoded twice");
  const path = decodeOnce(raw);
  if (path === null) return ambiguous("its path is not properly encoded");
  if (hasControls(path)) return ambiguous("its path has an encoded control character");
  // Some servers drop what follows a semicolon in each part of a path.
  const hasDots = path.split("/").some((part) => /^\.{1,2}(?:;|$)/.test(part));
  return hasDots ? ambiguous("its path has a part that is . or ..") : { kind: "path", path };
}

/** Null for what is not UTF-8, or has a % that begins nothing. */
function decodeOnce(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

function hasControls(text: string): boolean {
  return [...text].some((character) => character < " " || character === "\x7f");
}

function ambiguous(what: string): Ambiguous {
  return { kind: "ambiguous", what };
}
