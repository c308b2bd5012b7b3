import { z } from "zod";
import { AnySignal } from "../../../../lib/time/any-signal.js";
import { beforeAbort } from "../../../../lib/time/before-abort.js";
import type { Elicit, ElicitAnswer, ElicitField, ElicitQuestion } from "../../../../tools/index.js";
import { fieldOf } from "./elicitation-fields.js";

const MAX_FIELDS = 50;
const MAX_MESSAGE_CHARS = 4096;
const MAX_URL_CHARS = 4096;
/**
 * How many questions may wait for the person at once. Further ones are declined: nobody would answer that
 * many.
 */
const MAX_WAITING = 8;
/**
 * How many questions one call may cause. Each stops the clock of the call, so without a limit it might never
 * end.
 */
const MAX_QUESTIONS = 20;

/**
 * A running call, during which the server may ask the user something. `pause` stops the clock of its time
 * limit.
 */
export interface AskingCall {
  elicit: Elicit | undefined;
  signal: AbortSignal;
  pause(): () => void;
}

const requestSchema = z.union([
  z.looseObject({ mode: z.literal("url"), message: z.string(), url: z.string().max(MAX_URL_CHARS) }),
  z.looseObject({
    mode: z.literal("form").nullish(),
    message: z.string(),
    requestedSchema: z.looseObject({
      properties: z.record(z.string(), z.unknown()).nullish(),
      required: z.array(z.string()).nullish(),
    }),
  }),
]);

/**
 * Passes the questions of one server to the user. A server does not say to which call a question belongs, so
 * the first running call that has somebody to answer gets it.
 */
export class Questions {
  readonly #server: string;
  readonly #calls = new Map<AskingCall, { questions: number }>();
  #waiting = 0;

  constructor(server: string) {
    this.#server = server;
  }

  /** Call the returned function when the call has ended. */
  add(call: AskingCall): () => void {
    this.#calls.set(call, { questions: 0 });
    return () => this.#calls.delete(call);
  }

  /**
   * Declines a question that arrives while no call is running: nothing that the user wanted can be the reason
   * for it.
   */
  async answer(params: unknown, signal: AbortSignal): Promise<ElicitAnswer> {
    const question = questionOf(this.#server, params);
    const [call, asked] = [...this.#calls].find(([{ elicit }]) => elicit !== undefined) ?? [];
    if (question === null || call?.elicit === undefined || asked === undefined) return { action: "decline" };
    if (this.#waiting >= MAX_WAITING || asked.questions >= MAX_QUESTIONS) return { action: "decline" };
    asked.questions += 1;
    const resume = [...this.#calls.keys()].map((one) => one.pause());
    using either = new AnySignal([signal, call.signal]);
    this.#waiting += 1;
    try {
      return await beforeAbort(call.elicit(question, { signal: either.signal }), either.signal);
    } catch {
      return { action: "cancel" };
    } finally {
      this.#waiting -= 1;
      for (const go of resume) go();
    }
  }
}

/** Null for a question that no user can be asked, such as one for a page that is not on the web. */
function questionOf(server: string, params: unknown): ElicitQuestion | null {
  const parsed = requestSchema.safeParse(params);
  if (!parsed.success) return null;
  const message = parsed.data.message.slice(0, MAX_MESSAGE_CHARS);
  if (parsed.data.mode === "url")
    return isWebPage(parsed.data.url) ? { kind: "url", server, message, url: parsed.data.url } : null;
  const { properties, required } = parsed.data.requestedSchema;
  const entries = Object.entries(properties ?? {});
  if (entries.length > MAX_FIELDS) return null;
  const fields = entries.map(([name, schema]) =>
    fieldOf(name, schema, { isRequired: required?.includes(name) ?? false }),
  );
  const known = fields.filter((field): field is ElicitField => field !== null);
  return known.length === fields.length ? { kind: "form", server, message, fields: known } : null;
}

function isWebPage(url: string): boolean {
  return URL.canParse(url) && ["https:", "http:"].includes(new URL(url).protocol);
}
