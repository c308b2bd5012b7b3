import { RequestError } from "@agentclientprotocol/sdk";
import { type BrigError, type ErrorCode, isBrigError } from "../../errors.js";
import { neutralise } from "../../lib/terminal/terminal.js";

/** The error codes of JSON-RPC 2.0; `auth` and `notFound` are defined by the Agent Client Protocol. */
const codes = {
  invalidRequest: -32_600,
  invalidParams: -32_602,
  internal: -32_603,
  auth: -32_000,
  notFound: -32_002,
};

const codeOf: Partial<Record<ErrorCode, number>> = {
  "model.auth": codes.auth,
  "session.unknown": codes.notFound,
  "session.busy": codes.invalidRequest,
  "config.invalid": codes.invalidParams,
  "policy.invalid": codes.invalidParams,
  "usage.invalid": codes.invalidParams,
  "workspace.invalid": codes.invalidParams,
};

const MAX_MESSAGE_CHARS = 4000;

/** The error for a request with wrong parameters. */
export function invalidParams(message: string): RequestError {
  return new RequestError(codes.invalidParams, message);
}

/** The error for a request that is not possible now, such as a second prompt while one is running. */
export function invalidRequest(message: string): RequestError {
  return new RequestError(codes.invalidRequest, message);
}

export function unknownSession(id: string): RequestError {
  return new RequestError(codes.notFound, `there is no session ${JSON.stringify(id.slice(0, 100))}`);
}

/** The error that the client is sent: it says what is wrong and, where brig knows it, what to do. */
export function requestError(error: unknown): RequestError {
  if (error instanceof RequestError) return error;
  if (isBrigError(error)) return ofBrig(error);
  const text = error instanceof Error ? error.message : String(error);
  return new RequestError(codes.internal, shown(`brig failed: ${text}`));
}

function ofBrig({ code, message, hint }: BrigError): RequestError {
  const text = hint === undefined ? message : `${message}\n${hint}`;
  return new RequestError(codeOf[code] ?? codes.internal, shown(text), { code });
}

function shown(text: string): string {
  return neutralise(text.slice(0, MAX_MESSAGE_CHARS));
}
