import { randomBytes, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { platform as ownPlatform } from "node:os";
import { join } from "node:path";
import { isBrigError } from "../../errors.js";
import { readOrNull } from "../../lib/json/json-shape.js";
import { TimeLimit } from "../../lib/time/time-limit.js";
import { ABSTRACT_START, openControlRecords } from "./control-records.js";
import {
  type ControlReply,
  type ControlRequest,
  readMessage,
  requestShape,
  sendMessage,
} from "./messages.js";
import type { SandboxPorts } from "./sandbox-ports.js";

const REQUEST_MS = 5000;
const MAX_CONNECTIONS = 8;

/** Answers requests for ports of this sandbox until it is disposed of. Errors: those of the system, `usage.invalid`. */
export async function serveControl(
  ports: SandboxPorts,
  brigHome: string,
  platform: NodeJS.Platform = ownPlatform(),
): Promise<AsyncDisposable> {
  const { directory, records } = await openControlRecords(brigHome);
  const token = randomBytes(32);
  // One process may own several sandboxes.
  const number = randomBytes(2).readUInt16BE();
  const isAbstract = platform === "linux";
  const address = isAbstract
    ? `${ABSTRACT_START}${randomBytes(51).toString("hex")}`
    : join(directory, `${randomBytes(8).toString("hex")}.sock`);
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    socket.on("error", () => undefined);
    void answer(socket, { token, ports });
  });
  server.maxConnections = MAX_CONNECTIONS;
  server.listen(address);
  await once(server, "listening");
  server.on("error", () => undefined);
  // The server does not keep the program from ending.
  server.unref();
  const { sandbox, label } = ports;
  const { id, workingDirectory } = sandbox;
  const record = { sandbox: id, workingDirectory, ...label, address, token: token.toString("hex") };
  const forget = await records.add(number, record).catch((error: unknown) => {
    server.close();
    throw error;
  });
  return {
    async [Symbol.asyncDispose]() {
      // If removing the record fails, it is removed later, once this process has ended.
      await forget().catch(() => undefined);
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

async function answer(
  socket: Socket,
  { token, ports }: { token: Buffer; ports: SandboxPorts },
): Promise<void> {
  using limit = new TimeLimit(REQUEST_MS);
  const request = readOrNull(requestShape, await readMessage(socket, limit.signal));
  // Other users of this machine can connect too; without the token they get no answer.
  if (request === null || !isToken(request.token, token)) return void socket.destroy();
  const reply = await perform(request, ports);
  const isDelivered = await sendMessage(socket, reply);
  // The process that asked has gone, so nobody knows of the port.
  if (!isDelivered && reply.kind === "opened") await ports.close(reply.port).catch(() => undefined);
  socket.end();
}

function isToken(given: string, token: Buffer): boolean {
  const bytes = Buffer.from(given, "hex");
  return bytes.length === token.length && timingSafeEqual(bytes, token);
}

async function perform(request: ControlRequest, ports: SandboxPorts): Promise<ControlReply> {
  try {
    if (request.kind === "close")
      return { kind: (await ports.close(request.hostPort)) ? "closed" : "unknown" };
    const { port, url } = await ports.open(request);
    return { kind: "opened", port, url };
  } catch (error) {
    const { code, hint } = isBrigError(error) ? error : { code: "sandbox.port-failed", hint: undefined };
    const message = error instanceof Error ? error.message : String(error);
    return { kind: "failed", code, message: message.slice(0, 1000), hint: hint?.slice(0, 1000) };
  }
}
