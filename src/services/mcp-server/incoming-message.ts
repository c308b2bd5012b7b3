import { type JSONRPCMessage, parseJSONRPCMessage } from "@modelcontextprotocol/server";
import { isTooDeep } from "../../lib/json/nesting.js";

/** What a client has sent. The `id` of an invalid message is the one that its error response has. */
export type IncomingMessage =
  | { kind: "message"; message: JSONRPCMessage }
  | { kind: "invalid"; code: number; reason: string; id: string | number | null };

export const ErrorCode = { parseError: -32700, invalidRequest: -32600, refused: -32000 } as const;

/** Reads one message. Never throws: whatever cannot be understood is `invalid`. */
export function parseMessage(text: string): IncomingMessage {
  const parsed = parseValue(text);
  if (parsed.kind === "invalid") return parsed;
  try {
    return { kind: "message", message: parseJSONRPCMessage(parsed.value) };
  } catch {
    return invalid("the message is no request, notification or response", idOf(parsed.value));
  }
}

/**
 * Parses JSON, and refuses values that are nested so deeply that writing them again would overflow the stack.
 */
export function parseValue(
  text: string,
): { kind: "value"; value: unknown } | Extract<IncomingMessage, { kind: "invalid" }> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { kind: "invalid", code: ErrorCode.parseError, reason: "the message is not JSON", id: null };
  }
  return isTooDeep(value)
    ? invalid("the message is nested too deeply", idOf(value))
    : { kind: "value", value };
}

function invalid(reason: string, id: string | number | null): Extract<IncomingMessage, { kind: "invalid" }> {
  return { kind: "invalid", code: ErrorCode.invalidRequest, reason, id };
}

function idOf(value: unknown): string | number | null {
  const id =
    typeof value === "object" && value !== null && "method" in value && "id" in value ? value.id : null;
  return typeof id === "string" || typeof id === "number" ? id : null;
}
