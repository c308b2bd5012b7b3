import { connect } from "node:net";
import type { ControlRecord } from "../../command/index.js";
import {
  type ControlReply,
  type ControlRequest,
  readMessage,
  replyShape,
  sendMessage,
} from "../../command/index.js";
import { BrigError, type ErrorCode } from "../../errors.js";
import { readOrNull } from "../../lib/json/json-shape.js";
import { TimeLimit } from "../../lib/time/time-limit.js";

/** How long to wait for an answer. The engine takes longer only if it is stuck. */
const ANSWER_MS = 15_000;

const codes: readonly ErrorCode[] = [
  ...(["sandbox.port-in-use", "sandbox.port-failed", "sandbox.gone", "usage.invalid"] as const),
];

type Asked = {
  [K in ControlRequest["kind"]]: Omit<Extract<ControlRequest, { kind: K }>, "token">;
}[ControlRequest["kind"]];

/**
 * Asks the process that owns the sandbox. Errors: those that the owner answers with, `sandbox.gone` if it has ended,
 * `sandbox.port-failed` if it does not answer, or the signal's reason.
 */
export async function askOwner(
  { address, token, pid }: ControlRecord & { pid: number },
  request: Asked,
  signal: AbortSignal,
): Promise<Exclude<ControlReply, { kind: "failed" }>> {
  using limit = new TimeLimit(ANSWER_MS, signal);
  const socket = connect(address);
  socket.on("error", () => undefined);
  try {
    await sendMessage(socket, { ...request, token });
    const reply = readOrNull(replyShape, await readMessage(socket, limit.signal));
    signal.throwIfAborted();
    if (reply === null)
      throw limit.isOver
        ? new BrigError(`the process ${pid}, which owns the sandbox, does not answer`, {
            code: "sandbox.port-failed",
            hint: "continue it with fg if it is suspended; brig doctor says whether the container engine answers",
          })
        : new BrigError(`the process ${pid}, which owns the sandbox, has ended`, { code: "sandbox.gone" });
    if (reply.kind !== "failed") return reply;
    throw new BrigError(reply.message, {
      code: codes.find((code) => code === reply.code) ?? "sandbox.port-failed",
      ...(reply.hint != null && { hint: reply.hint }),
    });
  } finally {
    socket.destroy();
  }
}
