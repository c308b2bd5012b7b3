import { request } from "node:http";
import { connect, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { errnoOf } from "../errno.js";
import { authorizationHeader, type ProxyAddress } from "./proxy-address.js";
import { askSocks } from "./socks.js";

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
  const socket = usesTls
    ? connectTls({ ...where, servername: isIP(host) === 0 ? host : "" })
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
