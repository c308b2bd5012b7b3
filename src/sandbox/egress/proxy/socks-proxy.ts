import type { Duplex } from "node:stream";
import type { Attempting, EgressGate } from "../gate.js";
import { readExactly } from "../inside-network.js";
import { reset } from "../join.js";
import type { Endpoint } from "../rules/decide.js";
import type { Denial } from "../rules/denial.js";
import { parseTarget, shownHost } from "../rules/target.js";
import { openTunnel, type ServeHttp } from "../tunnel.js";

const VERSION = 5;
const NO_AUTHENTICATION = 0;
const PASSWORD = 2;
const NO_METHOD = 0xff;
const CONNECT = 1;
const REPLY = {
  succeeded: 0,
  failed: 1,
  notAllowed: 2,
  hostUnreachable: 4,
  refused: 5,
  commandUnknown: 7,
  addressUnknown: 8,
} as const;

interface SocksOptions {
  gate: EgressGate;
  attempting: Attempting;
  serveHttp: ServeHttp;
}

/** Serves SOCKS 5 (RFC 1928), whose first byte has been put back. Any user and password are taken (RFC 1929). */
export async function serveSocks(
  stream: Duplex,
  { gate, attempting, serveHttp }: SocksOptions,
): Promise<void> {
  const timeoutMs = gate.limits.headTimeoutMs;
  const read = async (bytes: number) => await readExactly(stream, bytes, timeoutMs);
  if (!(await agreeOnMethod(stream, read))) return reset(stream);
  const asked = await readRequest(read);
  const reply = (code: number) => {
    stream.write(Buffer.from([VERSION, code, 0, 1, 0, 0, 0, 0, 0, 0]));
  };
  const refuse = (code: number) => {
    reply(code);
    stream.end();
    stream.resume();
  };
  if (asked.kind === "ended") return reset(stream);
  if (asked.kind === "refused") {
    const record = gate.begin({ ...attempting, way: "socks" }, { host: asked.host, port: asked.port });
    await record({ kind: "denied", denial: asked.denial });
    return refuse(asked.code);
  }
  await openTunnel(stream, asked.endpoint, {
    gate,
    attempting: { ...attempting, way: "socks" },
    serveHttp,
    answers: {
      accepted: () => reply(REPLY.succeeded),
      denied: () => refuse(REPLY.notAllowed),
      failed: (errno) => refuse(replyFor(errno)),
    },
  });
}

type Read = (bytes: number) => Promise<Buffer | null>;

async function agreeOnMethod(stream: Duplex, read: Read): Promise<boolean> {
  const [, count = 0] = (await read(2)) ?? [];
  const methods = await read(count);
  if (methods === null) return false;
  const offered = [NO_AUTHENTICATION, PASSWORD].find((method) => methods.includes(method));
  stream.write(Buffer.from([VERSION, offered ?? NO_METHOD]));
  if (offered !== PASSWORD) return offered !== undefined;
  const [, userBytes = 0] = (await read(2)) ?? [];
  if ((await read(userBytes)) === null) return false;
  const passwordBytes = await read(1);
  if (passwordBytes === null || (await read(passwordBytes[0] ?? 0)) === null) return false;
  stream.write(Buffer.from([1, 0]));
  return true;
}

type SocksRequest =
  | { kind: "asked"; endpoint: Endpoint }
  | { kind: "refused"; denial: Denial; host: string; port: number | null; code: number }
  | { kind: "ended" };

async function readRequest(read: Read): Promise<SocksRequest> {
  const [version, command = 0, , addressType] = (await read(4)) ?? [];
  if (version !== VERSION) return { kind: "ended" };
  const host = await readHost(read, addressType);
  if (host === undefined) {
    const denial = { kind: "malformed" } as const;
    return { kind: "refused", denial, host: "", port: null, code: REPLY.addressUnknown };
  }
  const portBytes = host === null ? null : await read(2);
  if (host === null || portBytes === null) return { kind: "ended" };
  const port = portBytes.readUInt16BE();
  const shown = shownHost(host);
  if (command !== CONNECT) {
    const denial = { kind: "method", method: command === 3 ? "UDP ASSOCIATE" : "BIND" } as const;
    return { kind: "refused", denial, host: shown, port, code: REPLY.commandUnknown };
  }
  const target = parseTarget(host);
  if (target !== null && port > 0) return { kind: "asked", endpoint: { target, port } };
  return { kind: "refused", denial: { kind: "malformed" }, host: shown, port, code: REPLY.notAllowed };
}

/** Reads the host as text; null if it does not come, undefined for a kind of address that does not exist. */
async function readHost(read: Read, addressType: number | undefined): Promise<string | null | undefined> {
  if (addressType === 1) return (await read(4))?.join(".") ?? null;
  if (addressType === 3) {
    const length = await read(1);
    // One character for each byte, so that nothing but ASCII can be read as a name.
    return length === null ? null : ((await read(length[0] ?? 0))?.toString("latin1") ?? null);
  }
  if (addressType !== 4) return undefined;
  const bytes = await read(16);
  return bytes === null ? null : (bytes.toString("hex").match(/.{4}/g) ?? []).join(":");
}

function replyFor(errno: string): number {
  if (errno === "ECONNREFUSED") return REPLY.refused;
  return errno === "ENOTFOUND" || errno === "EHOSTUNREACH" || errno === "ETIMEDOUT"
    ? REPLY.hostUnreachable
    : REPLY.failed;
}
