import type { IncomingMessage } from "node:http";
import { z } from "zod";
import { formatBytes } from "../../../lib/bytes.js";
import { isTooDeep } from "../../../lib/json/nesting.js";
import type { Route } from "../wire/routes.js";
import { MAX_FILE_BYTES } from "../wire/sandbox-schemas.js";
import { takePieces } from "../wire/take-pieces.js";
import type { MemoryShare } from "./memory-budget.js";
import { Refusal } from "./refusal.js";

const MAX_JSON_BYTES = 16 * 1024 * 1024;
/** The text of a body, and what is made of it. */
const JSON_COPIES = 2;

/** The parsed body of a request. Errors: refusals with 400, 413 and 429; the client's if it disconnects. */
export async function readBody(
  request: IncomingMessage,
  schema: Route["body"],
  memory: MemoryShare,
): Promise<unknown> {
  if (schema === undefined) return undefined;
  const pieces: Buffer[] = [];
  let bytes = 0;
  const maxBytes = schema === "bytes" ? MAX_FILE_BYTES : MAX_JSON_BYTES;
  const copies = schema === "bytes" ? 1 : JSON_COPIES;
  if (Number(request.headers["content-length"]) > maxBytes) throw tooLarge(maxBytes);
  await takePieces(request, (piece) => {
    bytes += piece.length;
    if (bytes > maxBytes) throw tooLarge(maxBytes);
    memory.take(piece.length * copies);
    pieces.push(piece);
  });
  const whole = Buffer.concat(pieces.splice(0));
  return schema === "bytes" ? whole : parsedJson(whole, schema);
}

/** Error: a refusal with 400 that names everything that is wrong. */
export function parsedAs(schema: z.ZodType, value: unknown, of: string): unknown {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw invalid(`${of} is not valid:\n${z.prettifyError(parsed.error)}`);
}

function parsedJson(bytes: Buffer, schema: z.ZodType): unknown {
  let value: unknown = {};
  try {
    if (bytes.length > 0) value = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (cause) {
    throw invalid("the body is not JSON in UTF-8", cause);
  }
  if (isTooDeep(value)) throw invalid("the body is nested too deeply");
  return parsedAs(schema, value, "the body");
}

function invalid(message: string, cause?: unknown): Refusal {
  return new Refusal(message, {
    status: 400,
    code: "usage.invalid",
    hint: "GET /openapi.json describes all requests",
    cause,
  });
}

function tooLarge(maxBytes: number): Refusal {
  return new Refusal(`a body of this request may have at most ${formatBytes(maxBytes)}`, {
    status: 413,
    code: "file.too-large",
    hint: "send it in several requests",
  });
}
