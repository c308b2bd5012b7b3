import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { EgressOutcome } from "../attempt.js";
import type { EgressGate } from "../gate.js";
import type { RequestDecision } from "../inspection.js";
import type { SignedRequest } from "../secrets/aws/sign-request.js";

interface Outgoing {
  gate: EgressGate;
  decision: Extract<RequestDecision, { kind: "allowed" }>;
  /** Socket on which the request is sent. */
  socket: Socket;
  isTls: boolean;
  authority: string;
}

/** The request as it is sent on: signed with a key of AWS, if the program signed it with the placeholder of one. */
export async function signOutgoing(
  request: IncomingMessage,
  { gate: { inspection, limits }, decision, socket, isTls, authority }: Outgoing,
): Promise<SignedRequest> {
  const { signing, path, headers } = decision;
  if (signing === null || inspection === null) return { kind: "signed", headers, body: null };
  return await inspection.sign(signing, {
    ...{ method: request.method ?? "GET", isTls, authority, path, headers },
    ...{ from: request, to: socket, idleTimeoutMs: limits.idleTimeoutMs },
  });
}

/** Recorded outcome for a request that could not be signed. */
export function signingOutcome(
  signed: Exclude<SignedRequest, { kind: "signed" }>,
  name: string,
): Exclude<EgressOutcome, { kind: "allowed" }> {
  if (signed.kind === "ended") return { kind: "failed", errno: "ECONNRESET" };
  return { kind: "denied", denial: { kind: "signing", name, problem: signed.problem } };
}
