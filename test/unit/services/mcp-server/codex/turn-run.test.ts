import { describe, expect, it } from "vitest";
import type { Ask } from "../../../../../src/services/mcp-server/codex/questions/current-caller.js";
import { type ClientCall, TurnRun } from "../../../../../src/services/mcp-server/codex/turn-run.js";

const call: ClientCall = {
  id: 1,
  signal: new AbortController().signal,
  notify: async () => undefined,
  progressToken: undefined,
  asking: { kind: "result" },
};
const elicitation = (message: string) => ({
  message,
  requestedSchema: { type: "object" as const, properties: {}, required: [] },
});
const text = (said: unknown) => ({ content: [{ type: "text" as const, text: JSON.stringify(said) }] });

/** Takes a turn that asks what the test says. */
function running(turn: (ask: Ask) => Promise<unknown>): TurnRun {
  return new TurnRun(call, async ({ caller }) => text(await turn(caller.ask as Ask)));
}

async function question(run: TurnRun): Promise<string> {
  const outcome = await run.goOn(call);
  if (outcome.kind !== "question") throw new Error("there is no question");
  return outcome.id;
}

describe("a turn whose client answers questions with other calls", () => {
  it("asks one question after the other, and goes on with their answers", async () => {
    const run = running(async (ask) => [
      await ask(elicitation("one"), { signal: undefined }),
      await ask(elicitation("two"), { signal: undefined }),
    ]);
    for (const answer of ["first", "second"]) run.answer(await question(run), { question: answer });
    expect(await run.goOn(call)).toEqual({ kind: "result", result: text(["first", "second"]) });
  });

  it("takes no answer for that of another question", async () => {
    const withdrawn = new AbortController();
    const run = running(async (ask) => {
      await ask(elicitation("one"), { signal: withdrawn.signal }).catch(() => undefined);
      return await ask(elicitation("two"), { signal: undefined });
    });
    const first = await question(run);
    withdrawn.abort();
    await new Promise((resolve) => setImmediate(resolve));
    run.answer(first, { question: "approved" });
    const second = await question(run);
    expect(second).not.toBe(first);
    run.answer(second, { question: "denied" });
    expect(await run.goOn(call)).toEqual({ kind: "result", result: text("denied") });
  });

  it("ends when it is interrupted while a question is open", async () => {
    const run = new TurnRun(call, async ({ caller }) => {
      const ask = caller.ask as Ask;
      return text(await ask(elicitation("one"), { signal: caller.signal }).catch(({ message }) => message));
    });
    await question(run);
    run.interrupt("nobody answered");
    await run.settled();
    expect(await run.goOn(call)).toEqual({ kind: "result", result: text("nobody answered") });
  });
});
