import { request } from "node:http";
import { connect, isIP, type Socket } from "node:net";
import { errnoOf } from "../errno.js";
import { authorizationHeader, type ProxyAddress } from "./proxies.js";

const HEAD_MAX_BYTES = 16_384;

export type ProxyDialled =
  | { kind: "connected"; socket: Socket }
  /** The proxy answered with this status. */
  | { kind: "refused"; status: number }
  /** The proxy could not be used. */
  | { kind: "failed"; errno: string };

export interface ProxyDialOptions {
  timeoutMs: number;
  /** Each of them ends the attempt. Default: nothing but its time limit. */
  signals?: readonly AbortSignal[];
}

/** Asks the proxy for a connection to the host. */
export async function dialThrough(
  proxy: ProxyAddress,
  { host, port }: { host: string; port: number },
  options: ProxyDialOptions,
): Promise<ProxyDialled> {
  const reached = await dialProxy(proxy, options);
  if (reached.kind !== "connected") return reached;
  const { socket } = reached;
  const ask = proxy.kind === "socks" ? askSocks : askHttp;
  const failure = await settled(options, socket, (settle) => ask(socket, proxy, { host, port, settle }));
  if (failure === null) return reached;
  socket.destroy();
  return failed(failure);
}

/** Connects to the proxy itself, which is then asked for a URL. */
export async function dialProxy(
  { host, port, usesTls }: ProxyAddress,
  options: ProxyDialOptions,
): Promise<ProxyDialled> {
  const where = { host, port, allowHalfOpen: true, noDelay: true };
  // Loaded only for such a proxy: it takes ten milliseconds.
  const socket = usesTls
    ? (await import("node:tls")).connect({ ...where, servername: isIP(host) === 0 ? host : "" })
    : connect(where);
  const failure = await settled(options, socket, (settle) => {
    socket.once(usesTls ? "secureConnect" : "connect", () => settle(null));
  });
  // Whoever uses the socket learns of its end by its closing, whether or not there was an error.
  socket.on("error", () => undefined);
  if (failure === null) return { kind: "connected", socket };
  socket.destroy();
  return failed(failure);
}

/** The status of an answer, or an errno. */
type Failure = number | string;

/** Null if nothing has failed. */
type Settle = (failure: Failure | null) => void;

function failed(failure: Failure): ProxyDialled {
  if (typeof failure === "number") return { kind: "refused", status: failure };
  return { kind: "failed", errno: failure };
}

async function settled(
  { timeoutMs, signals = [] }: ProxyDialOptions,
  socket: Socket,
  begin: (settle: Settle) => void,
): Promise<Failure | null> {
  if (signals.some(({ aborted }) => aborted)) return "ECANCELED";
  return await new Promise((resolve) => {
    const settle = (failure: Failure | null) => {
      clearTimeout(timer);
      for (const signal of signals) signal.removeEventListener("abort", cancel);
      socket.off("error", fail).off("close", lose);
      resolve(failure);
    };
    const cancel = () => settle("ECANCELED");
    const fail = (error: unknown) => settle(errnoOf(error) ?? "EIO");
    const lose = () => settle("ECONNRESET");
    const timer = setTimeout(() => settle("ETIMEDOUT"), timeoutMs);
    for (const signal of signals) signal.addEventListener("abort", cancel, { once: true });
    socket.once("error", fail).once("close", lose);
    begin(settle);
  });
}

function askHttp(
  socket: Socket,
  proxy: ProxyAddress,
  { host, port, settle }: { host: string; port: number; settle: Settle },
): void {
  const authority = host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
  const asked = request({
    ...{ method: "CONNECT", path: authority, setHost: false, maxHeaderSize: HEAD_MAX_BYTES },
    headers: ["Host", authority, ...authorizationHeader(proxy)],
    createConnection: () => socket,
  });
  asked.once("connect", ({ statusCode = 0 }, _, head) => {
    // The first bytes of a server that speaks first may come with the answer.
    if (head.length > 0) socket.unshift(head);
    settle(statusCode >= 200 && statusCode < 300 ? null : statusCode);
  });
  asked.once("error", (error) => settle(errnoOf(error) ?? "EIO"));
  asked.once("close", () => settle("ECONNRESET"));
  asked.end();
}

const VERSION = 5;
const NO_AUTHENTICATION = 0;
const PASSWORD = 2;
const CONNECT = 1;
const NAME = 3;
/** The errno for each answer, by the number of the answer (RFC 1928). */
const ERRNOS: readonly string[] = [
  ...["", "EIO", "EACCES", "ENETUNREACH", "EHOSTUNREACH", "ECONNREFUSED", "ETIMEDOUT", "EOPNOTSUPP"],
];

/** Asks a SOCKS 5 proxy, which looks the name up itself (RFC 1928, 1929). */
function askSocks(
  socket: Socket,
  { user }: ProxyAddress,
  { host, port, settle }: { host: string; port: number; settle: (errno: string | null) => void },
): void {
  const target = lengthPrefixed(host);
  const credentials = [lengthPrefixed(user?.name ?? ""), lengthPrefixed(user?.password ?? "")];
  if ([target, ...credentials].includes(null)) {
    settle("EINVAL");
    return;
  }
  const method = user === null ? NO_AUTHENTICATION : PASSWORD;
  const connectTo = () =>
    socket.write(Buffer.from([VERSION, CONNECT, 0, NAME, ...(target ?? []), port >> 8, port & 0xff]));
  let step: "method" | "password" | "connect" = "method";
  let received = Buffer.alloc(0);
  const end = (errno: string | null) => {
    socket.off("readable", take);
    if (received.length > 0) socket.unshift(received);
    settle(errno);
  };
  // Unlike "data", it leaves the socket as it was: what comes next is for whoever uses the connection.
  const take = () => {
    received = Buffer.concat([received, socket.read() ?? Buffer.alloc(0)]);
    for (;;) {
      const length = step === "connect" ? answerLength(received) : 2;
      if (received.length < length) return;
      const [, code = 1] = received;
      received = received.subarray(length);
      if (step === "connect") return end(code === 0 ? null : (ERRNOS[code] ?? "EIO"));
      if (step === "password") {
        if (code !== 0) return end("EACCES");
        step = "connect";
        connectTo();
      } else if (code === PASSWORD && method === PASSWORD) {
        step = "password";
        socket.write(Buffer.from([1, ...(credentials[0] ?? []), ...(credentials[1] ?? [])]));
      } else if (code === NO_AUTHENTICATION) {
        step = "connect";
        connectTo();
      } else return end("EACCES");
    }
  };
  socket.on("readable", take);
  const offered = user === null ? [NO_AUTHENTICATION] : [NO_AUTHENTICATION, PASSWORD];
  socket.write(Buffer.from([VERSION, offered.length, ...offered]));
}

/** Five bytes say how long an answer with an address is. */
function answerLength(received: Buffer): number {
  const [, , , kind, length = 0] = received;
  if (received.length < 5) return 5;
  return kind === NAME ? 7 + length : kind === 4 ? 22 : 10;
}

function lengthPrefixed(text: string): number[] | null {
  const bytes = [...Buffer.from(text)];
  return bytes.length > 255 ? null : [bytes.length, ...bytes];
}
