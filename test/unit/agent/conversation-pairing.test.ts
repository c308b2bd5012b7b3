import fc from "fast-check";
import { expect, it } from "vitest";
import { openConversation } from "../../../src/agent/conversation.js";
import type { ResponseItem } from "../../../src/agent/model/items.js";
import type { ModelClient, ModelEvent, ModelRequest } from "../../../src/agent/model/model-client.js";
import { BrigError } from "../../../src/errors.js";
import { runs } from "../../support/fuzz.js";
import { anyHistory, saidByAssistant, unpaired } from "../../support/histories.js";
import { MemorySandbox } from "../../support/memory-sandbox.js";
import { wireSetting } from "../../support/wire-conversation.js";

const WINDOW_TOKENS = 2000;

type Ending = "small" | "full" | "uncounted" | "broken" | "overflow" | "refused" | "aborted";

interface Answer {
  items: readonly ResponseItem[];
  ending: Ending;
}

const callIds = fc.constantFrom("a", "b", "c");
const anyAnswer: fc.Arbitrary<Answer> = fc.record({
  items: fc.array(
    fc.oneof(
      callIds.map(
        (id): ResponseItem => ({ type: "function_call", call_id: id, name: "none", arguments: "{}" }),
      ),
      callIds.map((id): ResponseItem => ({ type: "custom_tool_call", call_id: id, name: "none", input: "" })),
      fc.constant(saidByAssistant("hm")),
    ),
    { maxLength: 3 },
  ),
  ending: fc.constantFrom<Ending>(
    "small",
    "small",
    "full",
    "uncounted",
    "broken",
    "overflow",
    "refused",
    "aborted",
  ),
});

/** Answers what it is told to, and from then on with a word and nothing else. */
class FaultyModel implements ModelClient {
  readonly provider = "test";
  readonly model = "test";
  readonly maxStreamRetries = 2;
  readonly requests: ModelRequest[] = [];
  stop = new AbortController();
  readonly #answers: Answer[];

  constructor(answers: readonly Answer[]) {
    this.#answers = [...answers];
  }

  async *stream(request: ModelRequest, signal: AbortSignal): AsyncIterable<ModelEvent> {
    signal.throwIfAborted();
    this.requests.push(request);
    const { items, ending } = this.#answers.shift() ?? { items: [saidByAssistant("so")], ending: "small" };
    // A model without tools calls none.
    const told = request.tools.length === 0 ? [saidByAssistant("a summary")] : items;
    for (const item of told) yield { kind: "item", item };
    if (ending === "aborted") this.stop.abort(new Error("stopped"));
    signal.throwIfAborted();
    yield endOf(ending);
  }
}

function endOf(ending: Ending): ModelEvent {
  switch (ending) {
    case "broken":
      return {
        kind: "broken",
        error: new BrigError("broke off", { code: "model.unreachable" }),
        retryAfterMs: 0,
      };
    case "overflow":
      throw new BrigError("too long", { code: "model.context-window" });
    case "refused":
      throw new BrigError("no", { code: "model.failed" });
    case "uncounted":
      return { kind: "completed", usage: null };
    default: {
      const inputTokens = ending === "full" ? WINDOW_TOKENS : 100;
      return {
        kind: "completed",
        usage: { inputTokens, cachedInputTokens: 0, outputTokens: 10, reasoningOutputTokens: 0 },
      };
    }
  }
}

it("every request has each call with its output after it, whatever goes wrong, and every turn comes to an end", async () => {
  const turns = fc.array(fc.boolean(), { minLength: 1, maxLength: 4 });
  await fc.assert(
    fc.asyncProperty(
      anyHistory,
      fc.array(anyAnswer, { maxLength: 12 }),
      turns,
      async (initialItems, answers, compacts) => {
        const model = new FaultyModel(answers);
        const conversation = openConversation({
          model,
          sandbox: new MemorySandbox(),
          setting: wireSetting,
          initialItems,
          compaction: { contextWindowTokens: WINDOW_TOKENS },
        });
        for (const compactsFirst of compacts) {
          model.stop = new AbortController();
          if (compactsFirst) await conversation.compact({ signal: model.stop.signal });
          model.stop = new AbortController();
          const { status } = await conversation.runTurn({ prompt: "go on", signal: model.stop.signal });
          expect(["completed", "failed", "interrupted"]).toContain(status);
        }
        await conversation.close();
        for (const { input } of model.requests) expect(unpaired(input)).toEqual([]);
        expect(model.requests.length).toBeLessThan(100);
      },
    ),
    { numRuns: runs({ short: 40, deep: 600 }) },
  );
});
