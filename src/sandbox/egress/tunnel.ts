import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { type Attempting, type EgressGate, outcomeOf, type RecordAttempt } from "./gate.js";
import { join, reset } from "./join.js";
import type { Endpoint } from "./rules/decide.js";
import type { Denial } from "./rules/denial.js";
import { hostOf, isSameTarget, parseTarget, shownHost, type Target } from "./rules/target.js";

/** Answers in the protocol by which a tunnel was asked for. */
interface TunnelAnswers {
  accepted(): void;
  denied(denial: Denial): void;
  failed(errno: string): void;
}

/**
 * Serves a connection that turned out to speak plain HTTP, or whose TLS ends here with `isTls`. `socket` is already
 * connected to the endpoint, without TLS.
 */
export type ServeHttp = (
  inside: Duplex,
  tunnel: { attempting: Attempting; endpoint: Endpoint; socket: Socket; rule: string; isTls: boolean },
) => void;

/** A fatal alert "access denied" (RFC 8446, 6.2), so that a TLS client says more than "connection reset". */
const ACCESS_DENIED = Buffer.from([0x15, 3, 3, 0, 2, 2, 49]);

interface TunnelRequest {
  gate: EgressGate;
  attempting: Attempting;
  answers: TunnelAnswers;
  serveHttp: ServeHttp;
}

/** Connects a program to an endpoint, if the rules allow it and the first bytes show that it means it. */
export async function openTunnel(
  inside: Duplex,
  endpoint: Endpoint,
  { gate, attempting, answers, serveHttp }: TunnelRequest,
): Promise<void> {
  const record = gate.begin(attempting, { host: hostOf(endpoint.target), port: endpoint.port });
  // An error is seen by what reads from the stream; before and after, the closing is enough.
  inside.on("error", () => undefined);
  const opened = await gate.open(endpoint, attempting);
  if (opened.kind !== "open") {
    // First the record, which needs the program that asked to be still there.
    await record(outcomeOf(opened), { rule: opened.rule });
    if (opened.kind === "denied") answers.denied(opened.denial);
    else answers.failed(opened.errno);
    return;
  }
  const { socket, rule } = opened;
  const isCovered = gate.inspection?.covers(endpoint) ?? false;
  const anyProtocol = opened.anyProtocol && !isCovered;
  let cut: Denial | null = gate.watch(socket, endpoint, (denial) => {
    cut = denial;
  });
  if (cut !== null) {
    await record({ kind: "denied", denial: cut }, { rule });
    return answers.denied(cut);
  }
  answers.accepted();
  const timeoutMs = gate.limits.headTimeoutMs;
  const { target } = endpoint;
  const judged = { target, anyProtocol, endsTls: isCovered, timeoutMs };
  const opening = await judgeOpening(inside, socket, judged);
  if (opening.kind === "http") return serveHttp(inside, { attempting, endpoint, socket, rule, isTls: false });
  if (opening.kind === "pass" && isCovered && gate.inspection !== null) {
    const accepted = await gate.inspection.accept(inside, endpoint, timeoutMs);
    if (accepted.kind === "accepted")
      return serveHttp(accepted.stream, { attempting, endpoint, socket, rule, isTls: true });
    socket.destroy();
    return await record({ kind: "denied", denial: { kind: "unreadable", errno: accepted.errno } });
  }
  if (opening.kind === "pass") {
    // Data in TLS cannot be inspected here.
    if (!opening.isTls)
      gate.canaries?.watch(inside, (name) => {
        cut = { kind: "canary", name, isLeak: true };
        reset(inside);
        socket.destroy();
      });
    await passThrough(inside, socket, { record, rule, wasCut: () => cut });
    return;
  }
  socket.destroy();
  if (opening.kind === "denied") await refuse(inside, opening.denial, record);
  else {
    reset(inside);
    await record({ kind: "failed", errno: opening.errno }, { rule });
  }
}

async function passThrough(
  inside: Duplex,
  socket: Socket,
  { record, rule, wasCut }: { record: RecordAttempt; rule: string; wasCut: () => Denial | null },
): Promise<void> {
  const { errno, ...bytes } = await join(inside, socket);
  const denial = wasCut();
  if (denial !== null) await record({ kind: "denied", denial }, { rule, ...bytes });
  else await record(errno === null ? { kind: "allowed" } : { kind: "failed", errno }, { rule, ...bytes });
}

async function refuse(inside: Duplex, denial: Denial, record: RecordAttempt): Promise<void> {
  await record({ kind: "denied", denial });
  const isTls = denial.kind === "other-name" || denial.kind === "no-name";
  if (!isTls || inside.destroyed) return reset(inside);
  inside.end(ACCESS_DENIED);
  inside.resume();
}

type Opening =
  | { kind: "pass"; isTls: boolean }
  | { kind: "http" }
  | { kind: "denied"; denial: Denial }
  /** Nothing that can be judged came: the program closed its end, broke it, or took too long. */
  | { kind: "ended"; errno: string };

interface OpeningOptions extends JudgedBy {
  timeoutMs: number;
}

/**
 * Waits for what a program sends first, and judges it. The bytes are put back. Where any protocol is allowed, the
 * server may speak first, as those of SSH and MySQL do.
 */
async function judgeOpening(
  inside: Duplex,
  outside: Duplex,
  { target, anyProtocol, endsTls, timeoutMs }: OpeningOptions,
): Promise<Opening> {
  const chunks: Buffer[] = [];
  const judge = (): Opening | null => {
    for (let chunk = inside.read(); chunk !== null; chunk = inside.read()) chunks.push(chunk);
    const data = Buffer.concat(chunks);
    const verdict = judgeFirstBytes(data, { target, anyProtocol, endsTls });
    if (verdict.kind !== "incomplete") return verdict;
    if (anyProtocol && (outside.readableLength > 0 || inside.readableEnded))
      return { kind: "pass", isTls: false };
    if (inside.readableEnded || inside.destroyed || outside.destroyed)
      return { kind: "ended", errno: "ECONNRESET" };
    return null;
  };
  const opening = await new Promise<Opening>((resolve) => {
    const sides = anyProtocol ? [inside, outside] : [inside];
    const look = () => {
      const result = judge();
      if (result !== null) settle(result);
    };
    const settle = (result: Opening) => {
      clearTimeout(timer);
      for (const side of sides) side.off("readable", look).off("end", look);
      for (const side of [inside, outside]) side.off("close", look);
      resolve(result);
    };
    // A server that waits for a program that waits for the server: any protocol may begin like that.
    const timer = setTimeout(
      () => settle(anyProtocol ? { kind: "pass", isTls: false } : { kind: "ended", errno: "ETIMEDOUT" }),
      timeoutMs,
    );
    for (const side of sides) side.on("readable", look).on("end", look);
    for (const side of [inside, outside]) side.on("close", look);
    look();
  });
  if (chunks.length > 0 && !inside.destroyed) inside.unshift(Buffer.concat(chunks));
  return opening;
}

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

interface JudgedBy {
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

export type ClientHello =
  | { kind: "incomplete" }
  | { kind: "malformed" }
  | { kind: "complete"; serverName: string | null; isNameEncrypted: boolean };

const RECORD_HEADER = 5;
const MESSAGE_HEADER = 4;
const HANDSHAKE = 22;
const CLIENT_HELLO = 1;
const SERVER_NAME = 0;
const ENCRYPTED_CLIENT_HELLO = 0xfe0d;
/** Limit for one message: greetings with keys of post-quantum algorithms have 2 KB. */
const CLIENT_HELLO_MAX_BYTES = 32_768;

/** Reads the name of the server from the first bytes of a TLS connection (RFC 8446, RFC 6066). */
export function readClientHello(data: Buffer): ClientHello {
  const greeting = joinRecords(data);
  if (greeting === null) return { kind: "malformed" };
  if (greeting.length > 0 && greeting[0] !== CLIENT_HELLO) return { kind: "malformed" };
  if (greeting.length < MESSAGE_HEADER) return { kind: "incomplete" };
  const length = greeting.readUIntBE(1, 3);
  if (length > CLIENT_HELLO_MAX_BYTES) return { kind: "malformed" };
  if (greeting.length < MESSAGE_HEADER + length) return { kind: "incomplete" };
  try {
    return readBody(new Fields(greeting.subarray(MESSAGE_HEADER, MESSAGE_HEADER + length)));
  } catch (error) {
    if (error instanceof RangeError) return { kind: "malformed" };
    throw error;
  }
}

/** A message may be cut into several records. */
function joinRecords(data: Buffer): Buffer | null {
  const parts: Buffer[] = [];
  let at = 0;
  while (data.length - at >= RECORD_HEADER) {
    const length = data.readUInt16BE(at + 3);
    if (data[at] !== HANDSHAKE || data[at + 1] !== 3 || length === 0) return null;
    parts.push(data.subarray(at + RECORD_HEADER, at + RECORD_HEADER + length));
    at += RECORD_HEADER + length;
  }
  return Buffer.concat(parts);
}

function readBody(hello: Fields): ClientHello {
  hello.skip(2 + 32);
  hello.field(1);
  hello.field(2);
  hello.field(1);
  const none = { kind: "complete", serverName: null, isNameEncrypted: false } as const;
  if (hello.isAtEnd) return none;
  const extensions = hello.field(2);
  let serverName: string | null = null;
  let isNameEncrypted = false;
  while (!extensions.isAtEnd) {
    const type = extensions.number(2);
    const content = extensions.field(2);
    if (type === ENCRYPTED_CLIENT_HELLO) isNameEncrypted = true;
    if (type !== SERVER_NAME) continue;
    // Two names: the server may take another one than we do.
    if (serverName !== null) return { kind: "malformed" };
    const names = content.field(2);
    if (names.number(1) !== 0) return { kind: "malformed" };
    serverName = names.field(2).text();
    if (!names.isAtEnd || !content.isAtEnd) return { kind: "malformed" };
  }
  return hello.isAtEnd ? { kind: "complete", serverName, isNameEncrypted } : { kind: "malformed" };
}

/** Reads numbers, and fields that begin with their length. Throws a RangeError beyond the end. */
class Fields {
  readonly #data: Buffer;
  #at = 0;

  constructor(data: Buffer) {
    this.#data = data;
  }

  get isAtEnd(): boolean {
    return this.#at === this.#data.length;
  }

  skip(bytes: number): void {
    if (this.#at + bytes > this.#data.length) throw new RangeError("beyond the end");
    this.#at += bytes;
  }

  number(bytes: number): number {
    this.skip(bytes);
    return this.#data.readUIntBE(this.#at - bytes, bytes);
  }

  field(lengthBytes: number): Fields {
    const length = this.number(lengthBytes);
    this.skip(length);
    return new Fields(this.#data.subarray(this.#at - length, this.#at));
  }

  text(): string {
    return this.#data.toString("latin1");
  }
}
