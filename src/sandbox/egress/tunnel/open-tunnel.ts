import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { type Attempting, type EgressGate, outcomeOf, type RecordAttempt } from "../gate.js";
import type { Endpoint } from "../rules/decide.js";
import type { Denial } from "../rules/denial.js";
import { hostOf } from "../rules/target.js";
import { join, reset } from "./join.js";
import { judgeOpening } from "./opening.js";

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
