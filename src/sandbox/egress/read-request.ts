import type { IncomingHttpHeaders } from "node:http";

/** A request in all the ways in which a server may read it. */
export interface ReadRequest {
  method: string;
  /** Decoded, without `.` and `..`: as it is written, and without the parameters of its parts. */
  paths: readonly string[];
  /** Decoded, with `&` between parameters, and with `;` as well. */
  queries: readonly (readonly Parameter[])[];
}

interface Parameter {
  name: string;
  value: string;
}

export type RequestReading = { kind: "read"; request: ReadRequest } | Ambiguous;

interface Ambiguous {
  kind: "ambiguous";
  what: string;
}

/** Headers and parameters that some servers, and some proxies in front of them, take in place of the request's own method, path or host. */
const OVERRIDES: Readonly<Record<"method" | "path" | "host", ReadonlySet<string>>> = {
  method: new Set([
    ...["x-http-method-override", "x-http-method", "x-method-override", "x-original-method"],
    ...["x-forwarded-method", "x-rewrite-method", "x-override-method", "http-method-override"],
  ]),
  path: new Set([
    ...["x-original-url", "x-original-uri", "x-original-path", "x-rewrite-url", "x-rewrite-uri"],
    ...["x-forwarded-uri", "x-forwarded-url", "x-forwarded-path", "x-forwarded-prefix", "x-script-name"],
    ...["x-envoy-original-path", "x-replaced-path", "x-request-uri", "x-path-info", "request-uri"],
    // Methods of WebDAV and of stores of objects, which have a second path.
    ...["destination", "x-amz-copy-source", "x-amz-rename-source", "x-goog-copy-source"],
    ...["x-ms-copy-source", "x-ms-rename-source", "x-oss-copy-source", "x-cos-copy-source"],
  ]),
  host: new Set([
    ...["x-forwarded-host", "x-original-host", "x-host", "x-http-host-override", "x-forwarded-server"],
    ...["x-rewrite-host"],
  ]),
};

const METHODS: ReadonlySet<string> = new Set([
  ...["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "COPY", "MOVE", "MERGE"],
]);

/** `target` is a path, with a query or without. */
export function readRequest(
  method: string,
  target: string,
  headers: Readonly<IncomingHttpHeaders>,
): RequestReading {
  const override = overrideIn(headers);
  if (override !== null) return override;
  if (!/^\/[\x21-\x7e]*$/.test(target)) return ambiguous("its path does not begin with /, or is not ASCII");
  const mark = target.indexOf("?");
  const path = readPath(mark === -1 ? target : target.slice(0, mark));
  if (path.kind === "ambiguous") return path;
  const query = mark === -1 ? "" : target.slice(mark + 1);
  if (query.includes("#")) return ambiguous("its query has a #");
  const queries: Parameter[][] = [];
  for (const separator of query.includes(";") ? ["&", /[&;]/] : ["&"]) {
    const parameters = readQuery(query.split(separator));
    if (parameters === null) return ambiguous("a parameter of its URL is not properly encoded");
    const naming = parameters.find((one) => namesMethod(one, method));
    if (naming !== undefined) return ambiguous(`its parameter ${naming.name} names another method`);
    queries.push(parameters);
  }
  const withoutParameters = path.path.replace(/;[^/]*/g, "");
  return { kind: "read", request: { method, paths: [...new Set([path.path, withoutParameters])], queries } };
}

function overrideIn(headers: Readonly<IncomingHttpHeaders>): Ambiguous | null {
  for (const [name, value] of Object.entries(headers)) {
    const plain = plainHeaderName(name);
    for (const [what, names] of Object.entries(OVERRIDES))
      if (names.has(plain)) return ambiguous(`its header ${name} names another ${what}`);
    if (plain === "forwarded" && /(?:^|[;,\s])host\s*=/i.test(String(value)))
      return ambiguous(`its header ${name} names another host`);
  }
  return null;
}

/** Servers that pass headers on as variables, as CGI does, cannot tell `-` and `_` apart. */
export function plainHeaderName(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, "-");
}

/** Whether frameworks read a method from a parameter of this name. `method` by itself is often something else. */
function namesMethod({ name, value }: Parameter, method: string): boolean {
  const plain = plainHeaderName(name);
  if (plain === "-method" || OVERRIDES.method.has(plain)) return true;
  const named = value.toUpperCase();
  return ["method", "http-method", "httpmethod"].includes(plain) && METHODS.has(named) && named !== method;
}

/** Null if one of them is not properly encoded. */
function readQuery(pairs: readonly string[]): Parameter[] | null {
  const parameters: Parameter[] = [];
  for (const pair of pairs.filter((one) => one !== "")) {
    const [rawName = "", ...rest] = pair.split("=");
    const name = decodeOnce(rawName.replaceAll("+", " "));
    const value = decodeOnce(rest.join("=").replaceAll("+", " "));
    if (name === null || value === null) return null;
    parameters.push({ name, value });
  }
  return parameters;
}

function readPath(raw: string): { kind: "path"; path: string } | Ambiguous {
  if (/[\\#]/.test(raw)) return ambiguous("its path has a backslash or #");
  if (raw.includes("//")) return ambiguous("its path has two slashes in a row");
  if (/%(?:2f|5c)/i.test(raw)) return ambiguous("its path has an encoded slash or backslash");
  if (/%(?:3f|23)/i.test(raw)) return ambiguous("its path has an encoded ? or #");
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
