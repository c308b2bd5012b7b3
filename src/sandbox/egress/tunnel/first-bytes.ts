import type { Denial } from "../rules/denial.js";
import { isSameTarget, parseTarget, shownHost, type Target } from "../rules/target.js";
import { CLIENT_HELLO_MAX_BYTES, readClientHello } from "./client-hello.js";

export type FirstBytes =
  /** More bytes are needed. */
  | { kind: "incomplete" }
  /** The parser of HTTP has to look at it. */
  | { kind: "http" }
  | { kind: "pass"; isTls: boolean }
  | { kind: "denied"; denial: Denial };

const TLS_HANDSHAKE = 0x16;
const METHODS = [
  ...[
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "DELETE",
    "OPTIONS",
    "PATCH",
    "TRACE",
    "CONNECT",
    "PROPFIND",
    "PROPPATCH",
  ],
  ...["MKCOL", "COPY", "MOVE", "LOCK", "UNLOCK", "REPORT", "MERGE", "SEARCH", "QUERY"],
];
const METHOD_MAX_CHARS = Math.max(...METHODS.map((method) => method.length));

export interface JudgedBy {
  target: Target;
  /** Only what can be recognised is checked. */
  anyProtocol: boolean;
  /** TLS ends at the proxy, which knows no encrypted names. Browsers send a greeting that only looks as if it had one. */
  endsTls: boolean;
}

/** Decides by the first bytes that a program sends whether a connection is for its target. */
export function judgeFirstBytes(data: Buffer, { target, anyProtocol, endsTls }: JudgedBy): FirstBytes {
  if (data.length === 0) return { kind: "incomplete" };
  if (data[0] === TLS_HANDSHAKE && (data.length === 1 || data[1] === 3))
    return judgeHello(data, { target, anyProtocol, endsTls });
  const http = looksLikeHttp(data);
  if (http !== "no") return { kind: http === "yes" ? "http" : "incomplete" };
  return anyProtocol
    ? { kind: "pass", isTls: false }
    : { kind: "denied", denial: { kind: "unknown-protocol" } };
}

function judgeHello(data: Buffer, { target, anyProtocol, endsTls }: JudgedBy): FirstBytes {
  const hello = readClientHello(data);
  const unknown: FirstBytes = anyProtocol
    ? { kind: "pass", isTls: false }
    : { kind: "denied", denial: { kind: "unknown-protocol" } };
  if (hello.kind === "malformed") return unknown;
  if (hello.kind === "incomplete") return data.length > 2 * CLIENT_HELLO_MAX_BYTES ? unknown : hello;
  const { serverName, isNameEncrypted } = hello;
  if (isNameEncrypted && !endsTls) return { kind: "denied", denial: { kind: "no-name", isEncrypted: true } };
  if (serverName === null) {
    // Addresses have no name to send, and there is only one server at an address and port that a rule names.
    const isNameless = target.kind === "address" || anyProtocol;
    return isNameless
      ? { kind: "pass", isTls: true }
      : { kind: "denied", denial: { kind: "no-name", isEncrypted: false } };
  }
  const named = parseTarget(serverName);
  if (named !== null && isSameTarget(named, target)) return { kind: "pass", isTls: true };
  return { kind: "denied", denial: { kind: "other-name", name: shownHost(serverName) } };
}

function looksLikeHttp(data: Buffer): "yes" | "no" | "maybe" {
  const start = data.toString("latin1", 0, METHOD_MAX_CHARS + 2);
  const [method = "", rest] = start.split(" ", 2);
  if (rest === undefined) {
    const isStart = METHODS.some((one) => one.startsWith(start)) && start.length <= METHOD_MAX_CHARS;
    return isStart ? "maybe" : "no";
  }
  if (!METHODS.includes(method)) return "no";
  if (rest === "") return "maybe";
  return /^[/*h]/i.test(rest) ? "yes" : "no";
}
