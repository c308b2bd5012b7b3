import { request } from "node:http";
import { connect, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type { Endpoint } from "../rules/decide.js";
import { errnoOrIo } from "../tunnel/join.js";
import type { UpstreamProxy } from "./read-upstream.js";

const HEAD_MAX_BYTES = 16_384;

export type UpstreamDialled =
  | { kind: "connected"; socket: Socket }
  /** `PROXY_407` if the proxy answered that status, `PROXY_ECONNREFUSED` if it could not be reached. */
  | { kind: "failed"; errno: string };

/** Asks the proxy for a connection to the endpoint (CONNECT). */
export async function dialThrough(
  upstream: UpstreamProxy,
  { target, port }: Endpoint,
  connectTimeoutMs: number,
): Promise<UpstreamDialled> {
  const reached = await dialProxy(upstream, connectTimeoutMs);
  if (reached.kind === "failed") return reached;
  const { socket } = reached;
  const host = target.kind === "name" ? target.name : target.address;
  const authority = host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
  const failed = await new Promise<string | null>((resolve) => {
    const asked = request({
      ...{ method: "CONNECT", path: authority, setHost: false, maxHeaderSize: HEAD_MAX_BYTES },
      headers: ["Host", authority, ...authorizationHeader(upstream)],
      createConnection: () => socket,
    });
    const timer = setTimeout(() => resolve("PROXY_ETIMEDOUT"), connectTimeoutMs);
    const settle = (errno: string | null) => {
      clearTimeout(timer);
      resolve(errno);
    };
    asked.once("connect", ({ statusCode = 0 }, _, head) => {
      if (statusCode >= 200 && statusCode < 300) {
        // What a server says first may come with the answer.
        if (head.length > 0) socket.unshift(head);
        settle(null);
      } else settle(`PROXY_${statusCode}`);
    });
    asked.once("error", (error) => settle(`PROXY_${errnoOrIo(error)}`));
    asked.once("close", () => settle("PROXY_ECONNRESET"));
    asked.end();
  });
  if (failed === null) return reached;
  socket.destroy();
  return { kind: "failed", errno: failed };
}

/** Connects to the proxy itself, which is then asked for a URL. */
export async function dialProxy(
  { host, port, usesTls }: UpstreamProxy,
  connectTimeoutMs: number,
): Promise<UpstreamDialled> {
  const options = { host, port, allowHalfOpen: true, noDelay: true };
  const socket = usesTls
    ? connectTls({ ...options, servername: isIP(host) === 0 ? host : "" })
    : connect(options);
  const failed = await new Promise<string | null>((resolve) => {
    const timer = setTimeout(() => resolve("PROXY_ETIMEDOUT"), connectTimeoutMs);
    const settle = (errno: string | null) => {
      clearTimeout(timer);
      resolve(errno);
    };
    socket.once(usesTls ? "secureConnect" : "connect", () => settle(null));
    socket.once("error", (error) => settle(`PROXY_${errnoOrIo(error)}`));
  });
  // Whoever uses the socket learns of its end by its closing, whether or not there was an error.
  socket.on("error", () => undefined);
  if (failed === null) return { kind: "connected", socket };
  socket.destroy();
  return { kind: "failed", errno: failed };
}

/** The name and the value of the header, or nothing. */
export function authorizationHeader({ authorization }: UpstreamProxy): string[] {
  return authorization === null ? [] : ["Proxy-Authorization", authorization];
}
