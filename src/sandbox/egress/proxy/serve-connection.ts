import type { EgressGate } from "../gate.js";
import type { ConnectionOwner, InsideConnection } from "../inside-network.js";
import { readExactly } from "../read-exactly.js";
import { reset } from "../tunnel/join.js";
import type { HttpProxy } from "./http-proxy.js";
import { serveSocks } from "./socks-proxy.js";

interface ServeOptions {
  gate: EgressGate;
  http: HttpProxy;
  owner: Promise<ConnectionOwner | null>;
}

const SOCKS_5 = 5;

/** Serves a connection to the proxy's address. Its first byte says by which protocol. */
export async function serveConnection(
  { stream }: InsideConnection,
  { gate, http, owner }: ServeOptions,
): Promise<void> {
  stream.on("error", () => undefined);
  const first = await readExactly(stream, 1, gate.limits.headTimeoutMs);
  if (first === null) return reset(stream);
  stream.unshift(first);
  const attempting = { way: "http", owner } as const;
  if (first[0] === SOCKS_5) return await serveSocks(stream, { gate, attempting, serveHttp: http.serveHttp });
  if (/[A-Za-z\r\n]/.test(first.toString("latin1"))) return http.serve(stream, { attempting, fixed: null });
  await gate.begin(attempting, { host: "", port: null })({ kind: "denied", denial: { kind: "malformed" } });
  reset(stream);
}
