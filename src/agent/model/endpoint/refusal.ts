import { STATUS_CODES } from "node:http";
import { z } from "zod";
import { parseJson } from "../../../lib/json/parse-json.js";
import { retryAfterOf } from "./backoff.js";
import type { Refusal } from "./model-failure.js";

const LONGEST_BODY = 64 * 1024;

const text = z.string().nullish().catch(undefined);

/** `code` is ignored if it is a number: then it only repeats the HTTP status. */
const details = z.object({
  message: text,
  code: text,
  type: text,
  param: text,
  resets_in_seconds: z.number().max(1e9).nullish().catch(undefined),
});
type Details = Partial<z.output<typeof details>>;

const invalidField = z.object({
  msg: z.string(),
  loc: z.array(z.union([z.string(), z.number()])).optional(),
});

/** The body of a refusal, in the formats of OpenAI, vLLM, FastAPI, Ollama and Google. */
const refusalBody = z.union([
  z.object({ error: details }).transform(({ error }): Details => error),
  z.object({ error: z.string() }).transform(({ error }): Details => ({ message: error })),
  z.object({ detail: z.string() }).transform(({ detail }): Details => ({ message: detail })),
  z.object({ detail: z.array(invalidField) }).transform(
    ({ detail }): Details => ({
      message: detail.map(({ msg, loc = [] }) => `${loc.join(".")}: ${msg}`).join("; "),
    }),
  ),
  details.refine(({ message }) => message !== undefined && message !== null),
]);

export interface ReadRefusal extends Refusal {
  status: number;
  param: string | null;
}

/** The message is not shortened yet: secrets have to be removed from all of it first. */
export function readRefusal(status: number, headers: Headers, body: string): ReadRefusal {
  const said = readDetails(body);
  const { code, type, param = null, resets_in_seconds: resetsIn } = said;
  const reason = said.message ?? (isPlainText(headers, body) ? body.trim() : "");
  return {
    message: `${statusText(status)}${reason === "" ? "" : `: ${reason}`}`,
    status,
    code,
    type,
    param,
    retryAfterMs: retryAfterOf(headers, Date.now()),
    resetsInMs: typeof resetsIn === "number" ? resetsIn * 1000 : null,
    hint: hintOf(status, headers),
  };
}

/** Reads the error object of an event in a stream. The message is not shortened either. */
export function readStreamError(error: unknown): Refusal {
  const said = refusalBody.safeParse({ error }).data ?? {};
  return {
    message: said.message ?? "the endpoint failed without saying why",
    code: said.code,
    type: said.type,
  };
}

/** The beginning of a body, as text. */
export async function readBody(response: Response): Promise<string> {
  if (response.body === null) return "";
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let body = "";
  try {
    while (body.length < LONGEST_BODY) {
      const { done, value } = await reader.read();
      if (done) break;
      body += decoder.decode(value, { stream: true });
    }
  } catch {
    // The part that arrived before the connection broke may be enough.
  } finally {
    reader.cancel().catch(() => undefined);
  }
  return body.slice(0, LONGEST_BODY);
}

function readDetails(body: string): Details {
  const json = parseJson(body);
  return refusalBody.safeParse(Array.isArray(json) ? json[0] : json).data ?? {};
}

function isPlainText(headers: Headers, body: string): boolean {
  return !/html|json/.test(headers.get("content-type") ?? "") && !body.trimStart().startsWith("<");
}

function statusText(status: number): string {
  const name = STATUS_CODES[status];
  return `HTTP ${status}${name === undefined ? "" : ` ${name}`}`;
}

function hintOf(status: number, headers: Headers): string | undefined {
  const location = headers.get("location");
  if (status >= 300 && status < 400 && location !== null)
    return `set the provider's base_url to the address it redirects to: ${location}`;
  return undefined;
}
