import { z } from "zod";

/** JSON-RPC as Codex's exec-server speaks it: without the field `jsonrpc`, and with a string or a whole number as id. */
export type RequestId = string | number;

export interface RpcRequest {
  kind: "request";
  id: RequestId;
  method: string;
  params: unknown;
}

export type IncomingMessage =
  | RpcRequest
  | { kind: "notification"; method: string }
  /** A message that the client may not send; `id` is the one that the error is answered under. */
  | { kind: "invalid"; id: RequestId; reason: string };

/** The id of an error that answers no request, as Codex's own server has it. */
export const NO_REQUEST = -1;

/** The codes of errors. -32004 is Codex's own: the path does not exist. */
export const RpcErrorCode = {
  parseError: -32700,
  invalidRequest: -32600,
  unknownMethod: -32601,
  invalidParams: -32602,
  internal: -32603,
  notFound: -32004,
} as const;

/** A request that is refused or has failed. The message is for the person or model at the other end. */
export class RpcError extends Error {
  override readonly name = "RpcError";
  readonly code: number;

  constructor(message: string, { code, cause }: { code: number; cause?: unknown }) {
    super(message, { cause });
    this.code = code;
  }
}

/** The error for a request that is wrong, or that comes at the wrong time. */
export function invalidRequest(message: string): RpcError {
  return new RpcError(message, { code: RpcErrorCode.invalidRequest });
}

const requestId = z.union([z.string(), z.int()]);

const envelope = z.looseObject({
  id: requestId.nullish(),
  method: z.string().optional(),
  params: z.unknown().optional(),
});

/** Reads one message. Never throws: whatever cannot be understood is `invalid`. */
export function parseMessage(text: string): IncomingMessage {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { kind: "invalid", id: NO_REQUEST, reason: "the message is not JSON" };
  }
  const parsed = envelope.safeParse(value);
  if (!parsed.success)
    return { kind: "invalid", id: NO_REQUEST, reason: "the message is not a request or a notification" };
  const { id, method, params } = parsed.data;
  if (method === undefined)
    return { kind: "invalid", id: id ?? NO_REQUEST, reason: "the message names no method" };
  if (id === undefined || id === null) return { kind: "notification", method };
  return { kind: "request", id, method, params };
}

/** Checks the parameters of a method. Error: `invalidParams`, saying what is wrong. */
export function checkedParams<Params>(schema: z.ZodType<Params>, params: unknown): Params {
  const parsed = schema.safeParse(params);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const field = issue?.path.join(".") ?? "";
  const reason = `${field === "" ? "" : `${field}: `}${issue?.message ?? "not as expected"}`;
  throw new RpcError(`invalid params: ${reason}`, { code: RpcErrorCode.invalidParams });
}
