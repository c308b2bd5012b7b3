import type { AgentEvent } from "../turn/events.js";
import type { ConversationSpans } from "./conversation-spans.js";

/** Where the package of OpenTelemetry keeps what a program has registered, for all copies of itself. */
const REGISTRY = Symbol.for("opentelemetry.js.api.1");

/** The key under which a context says that spans below it may contain what was said. */
export const CAPTURES_CONTENT = Symbol.for("brig.captures-content");

/** Null if the program has registered nothing, or the package cannot be found from here. Loads nothing before. */
async function registeredApi(): Promise<typeof import("@opentelemetry/api") | null> {
  if (!(REGISTRY in globalThis)) return null;
  return await import("@opentelemetry/api").catch(() => null);
}

/**
 * Passes the events of a conversation on to the OpenTelemetry provider that the program has registered, if there is one.
 * Must not throw.
 */
export class ConversationTelemetry {
  readonly #capturesContent: boolean | undefined;
  #spans: ConversationSpans | null = null;
  #hasFailed = false;

  constructor(options: { capturesContent: boolean | undefined }) {
    this.#capturesContent = options.capturesContent;
  }

  /** Call this before events whose spans belong below the span that is active now. */
  async begin(): Promise<void> {
    const api = await registeredApi();
    if (api === null) return;
    const { ConversationSpans, openInstruments } = await import("./conversation-spans.js");
    const active = api.context.active();
    const capturesContent = this.#capturesContent ?? active.getValue(CAPTURES_CONTENT) === true;
    this.#spans ??= new ConversationSpans({ api, ...openInstruments(api), capturesContent });
    this.#spans.parent = active;
  }

  take(event: AgentEvent): void {
    this.#tell((spans) => spans.take(event));
  }

  /** Ends the spans of commands that nothing more is heard of. */
  end(): void {
    this.#tell((spans) => spans.end());
  }

  /** A provider that fails costs the rest of the spans, and not the turn. */
  #tell(tell: (spans: ConversationSpans) => void): void {
    if (this.#spans === null || this.#hasFailed) return;
    try {
      tell(this.#spans);
    } catch (error) {
      this.#hasFailed = true;
      process.emitWarning(error instanceof Error ? error : String(error));
    }
  }
}

/** Facts for a span, by their names. */
type Facts = Readonly<Record<string, string | number | boolean>>;

/**
 * Does a piece of work in a span of its own, below which those of conversations in it are. `factsOf` says what is known
 * of its result. Does only the work if the program has registered no provider.
 */
export async function inSpan<Result>(
  span: { name: string; facts: Facts; factsOf: (result: Result) => Facts },
  work: () => Promise<Result>,
): Promise<Result> {
  const api = await registeredApi();
  if (api === null) return await work();
  const { openInstruments } = await import("./conversation-spans.js");
  const { tracer } = openInstruments(api);
  return await tracer.startActiveSpan(span.name, { attributes: span.facts }, async (open) => {
    try {
      const result = await work();
      open.setAttributes(span.factsOf(result));
      return result;
    } catch (error) {
      open.setStatus({ code: api.SpanStatusCode.ERROR });
      throw error;
    } finally {
      open.end();
    }
  });
}
