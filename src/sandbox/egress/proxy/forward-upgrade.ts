import type { IncomingMessage } from "node:http";
import type { Duplex, Readable } from "node:stream";
import type { EgressGate } from "../gate.js";
import type { Denial } from "../rules/denial.js";
import { hostOf } from "../rules/target.js";
import type { MaskedAnswer } from "../secrets/masked-answer.js";
import { dropRest, errnoOrIo, join, reset } from "../tunnel/join.js";
import { UNSENDABLE } from "./exchange.js";
import type { HttpOrigin } from "./http-origin.js";
import { prepareRequest } from "./prepare-request.js";
import { failure, refusalOf } from "./refusal.js";
import { writeRefusal } from "./write-refusal.js";

/** Sends on the request for a web socket, and then everything that passes in it. */
export async function forwardUpgrade(
  request: IncomingMessage,
  stream: Duplex,
  { gate, origin }: { gate: EgressGate; origin: HttpOrigin },
): Promise<void> {
  stream.on("error", () => undefined);
  const prepared = await prepareRequest(request, { gate, origin });
  if (prepared.kind === "refused") return writeRefusal(stream, prepared.refusal);
  const { connection, path, headers, record, rule } = prepared;
  const { socket, endpoint } = connection;
  let cut: Denial | null = gate.watch(socket, endpoint, (denial) => {
    cut = denial;
  });
  if (cut !== null) {
    await record({ kind: "denied", denial: cut }, { rule });
    return writeRefusal(stream, refusalOf(cut, hostOf(endpoint.target)));
  }
  const outgoing = connection.request({
    method: request.method,
    path,
    headers: [...headers, "Connection", "Upgrade", "Upgrade", "websocket"],
  });
  if (outgoing === null) {
    socket.destroy();
    await record({ kind: "failed", errno: UNSENDABLE }, { rule });
    return writeRefusal(stream, failure(UNSENDABLE, hostOf(endpoint.target)));
  }
  outgoing.end();
  const result = await new Promise<{ incoming: IncomingMessage; head: Buffer | null } | { errno: string }>(
    (resolve) => {
      const timer = setTimeout(() => outgoing.destroy(), gate.limits.idleTimeoutMs);
      const settle = (one: { incoming: IncomingMessage; head: Buffer | null } | { errno: string }) => {
        clearTimeout(timer);
        resolve(one);
      };
      outgoing.once("upgrade", (incoming, _, head) => settle({ incoming, head }));
      outgoing.once("response", (incoming) => settle({ incoming, head: null }));
      outgoing.once("error", (error) => settle({ errno: errnoOrIo(error) }));
      outgoing.once("close", () => settle({ errno: "ECONNRESET" }));
      stream.once("close", () => outgoing.destroy());
    },
  );
  if ("errno" in result) {
    await record({ kind: "failed", errno: result.errno }, { rule });
    return writeRefusal(stream, failure(result.errno, hostOf(endpoint.target)));
  }
  const { incoming, head } = result;
  const answered = prepared.answer(incoming);
  if (answered === null) {
    socket.destroy();
    await record({ kind: "failed", errno: UNSENDABLE }, { rule });
    return writeRefusal(stream, failure(UNSENDABLE, hostOf(endpoint.target)));
  }
  const hop = head === null ? ["Connection", "close"] : ["Connection", "Upgrade", "Upgrade", "websocket"];
  stream.write(
    headOf(incoming.statusCode ?? 0, { ...answered, headers: [...answered.headers, ...hop] }),
    "latin1",
  );
  if (head === null) {
    [...answered.through, stream].reduce((from: Readable, to) => from.pipe(to), incoming);
    dropRest(stream);
    incoming.once("error", () => reset(stream));
    await new Promise<void>((resolve) => incoming.once("close", resolve));
    await record({ kind: "allowed" }, { rule, bytesIn: socket.bytesRead, bytesOut: socket.bytesWritten });
    return;
  }
  if (head.length > 0) socket.unshift(head);
  const { errno, ...bytes } = await join(stream, socket, answered.through);
  if (cut !== null) await record({ kind: "denied", denial: cut }, { rule, ...bytes });
  else await record(errno === null ? { kind: "allowed" } : { kind: "failed", errno }, { rule, ...bytes });
}

function headOf(status: number, { reason, headers }: Pick<MaskedAnswer, "reason" | "headers">): string {
  const lines = headers.flatMap((name, at) => (at % 2 === 0 ? [`${name}: ${headers[at + 1] ?? ""}`] : []));
  return [`HTTP/1.1 ${status} ${reason}`, ...lines, "", ""].join("\r\n");
}
