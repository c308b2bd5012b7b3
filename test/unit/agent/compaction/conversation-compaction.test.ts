import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { defaultCompactPrompt } from "../../../../src/agent/compaction/compactor.js";
import { compactedItems } from "../../../../src/agent/session/compacted-items.js";
import type { AgentEvent } from "../../../../src/agent/turn/events.js";
import {
  callDone,
  completed,
  created,
  messageDone,
  type Reply,
  turn,
} from "../../../support/responses-server.js";
import { openWireConversation as open } from "../../../support/wire-conversation.js";

const handoff = expect.stringMatching(/^user: This conversation grew too long.*\nAll is well\.$/s);
const permissions = expect.stringMatching(/^developer: <permissions instructions>/);
const environment = expect.stringMatching(/^user: <environment_context>\n {2}<cwd>/);

/** A response after which the conversation has so many tokens. */
function answer(totalTokens: number, ...items: readonly object[]): Reply {
  const usage = { input_tokens: totalTokens - 10, output_tokens: 10, total_tokens: totalTokens };
  return { kind: "stream", events: [created(), ...items, completed(usage)] };
}

const call = (id = "c1") => callDone(id, "shell", { command: ["echo", "hi"] });
const summary = answer(500, messageDone("All is well."));
const tooLong: Reply = {
  kind: "status",
  status: 400,
  body: { error: { code: "context_length_exceeded", message: "too long" } },
};
const compaction = { autoCompactTokens: 1000 };

const isAbout = ({ kind }: AgentEvent) =>
  kind === "compaction-started" || kind === "compacted" || kind === "warning";

describe("a conversation that fills between two requests", () => {
  it("is summed up without tools, and goes on from what the user said and the summary", async () => {
    await using opened = await open([answer(1000, call()), summary, answer(200, messageDone("Done."))], {
      compaction,
    });
    const result = await opened.conversation.runTurn({ prompt: "do it" });
    expect(result).toMatchObject({ status: "completed", lastMessage: "Done.", toolCalls: 1 });
    const [first, asked, next] = opened.requests;
    expect(asked?.body.tools).toEqual([]);
    expect(asked?.body.instructions).toBe(first?.body.instructions);
    expect(opened.said(1)).toEqual([
      ...opened.said(0),
      "function_call",
      "function_call_output",
      `user: ${defaultCompactPrompt}`,
    ]);
    expect(next?.body.tools).toEqual(first?.body.tools);
    expect(opened.said(2)).toEqual([permissions, environment, "user: do it", handoff]);
  });

  it("says so, and counts what it cost", async () => {
    await using opened = await open([answer(1000, call()), summary, answer(200, messageDone("Done."))], {
      compaction,
    });
    const { usage } = await opened.conversation.runTurn({ prompt: "do it" });
    expect(usage.inputTokens + usage.outputTokens).toBe(1700);
    expect(opened.events.filter(isAbout)).toEqual([
      { kind: "compaction-started", reason: "limit" },
      {
        kind: "compacted",
        reason: "limit",
        tokensBefore: expect.any(Number),
        tokensAfter: expect.any(Number),
      },
      { kind: "warning", message: expect.stringMatching(/summed up/) },
    ]);
    const done = opened.events.find((event) => event.kind === "compacted");
    expect(done?.tokensBefore).toBeGreaterThanOrEqual(1000);
    expect(done?.tokensAfter).toBeLessThan(1500);
  });

  it("leaves a record that a resumed session can go on from", async () => {
    await using opened = await open([answer(1000, call()), summary, answer(200, messageDone("Done."))], {
      compaction,
    });
    await opened.conversation.runTurn({ prompt: "do it" });
    const from = opened.records.findIndex(({ type }) => type === "compacted");
    const [record, ...after] = opened.records.slice(from);
    expect(record?.payload).toEqual({
      message: expect.stringMatching(/^This conversation grew too long.*\nAll is well\.$/s),
      replacement_history: opened.requests[2]?.body.input,
    });
    expect(after.slice(0, 2)).toMatchObject([
      { type: "event_msg", payload: { type: "context_compacted" } },
      { type: "turn_context", payload: { cwd: "/tmp" } },
    ]);
  });

  it("is not summed up again and again where a summary cannot make it shorter", async () => {
    const replies = [
      answer(5000, call("c1")),
      summary,
      answer(5000, call("c2")),
      answer(5050, call("c3")),
      answer(5100, call("c4")),
      summary,
      answer(5000, messageDone("Done.")),
    ];
    await using opened = await open(replies, { compaction });
    const { status } = await opened.conversation.runTurn({ prompt: "do it" });
    expect(status).toBe("completed");
    expect(opened.requests).toHaveLength(replies.length);
    expect(opened.requests.map(({ body }) => (body.tools as unknown[]).length === 0)).toEqual(
      replies.map((reply) => reply === summary),
    );
  });

  it("waits for a summary that breaks off, as for any response", async () => {
    const broken: Reply = { kind: "stream", events: [created(), messageDone("All")] };
    const model = { maxStreamRetries: 2 };
    await using opened = await open(
      [answer(1000, call()), broken, summary, answer(200, messageDone("Done."))],
      { compaction, provider: model },
    );
    await opened.conversation.runTurn({ prompt: "do it" });
    expect(opened.events.filter(({ kind }) => kind === "reconnecting")).toMatchObject([{ attempt: 1 }]);
    expect(opened.said(3).at(-1)).toEqual(handoff);
  });
});

describe("when a conversation is full", () => {
  it.each([
    ["at nine tenths of the window known of the model", { model: "gpt-5" }, 244_800],
    ["at nine tenths of the window that is set", { compaction: { contextWindowTokens: 10_000 } }, 9000],
    [
      "at the limit that is set",
      { compaction: { contextWindowTokens: 10_000, autoCompactTokens: 3000 } },
      3000,
    ],
    [
      "never above nine tenths of the window",
      { compaction: { contextWindowTokens: 10_000, autoCompactTokens: 9999 } },
      9000,
    ],
  ])("it is summed up %s", async (_, options, limit) => {
    const kinds = async (tokens: number) => {
      await using opened = await open([answer(tokens, messageDone("ok")), summary, answer(200)], options);
      await opened.conversation.runTurn({ prompt: "x" });
      // The second prompt, of two tokens or more, comes on top.
      await opened.conversation.runTurn({ prompt: "y" });
      return opened.events.some(({ kind }) => kind === "compacted");
    };
    expect(await kinds(limit - 100)).toBe(false);
    expect(await kinds(limit)).toBe(true);
  });

  it("is not known of a model that nobody has heard of: the endpoint's refusal tells", async () => {
    await using opened = await open([answer(5_000_000, call()), answer(200, messageDone("Done."))]);
    await opened.conversation.runTurn({ prompt: "x" });
    expect(opened.requests).toHaveLength(2);
    expect(opened.conversation.room).toEqual({ usedTokens: 200, windowTokens: null });
  });
});

describe("a conversation that is full before a turn", () => {
  it("is summed up first, and then told its context and the whole prompt", async () => {
    await using opened = await open(
      [answer(1000, messageDone("One.")), summary, answer(200, messageDone("Two."))],
      {
        compaction,
      },
    );
    await opened.conversation.runTurn({ prompt: "one" });
    await opened.conversation.runTurn({ prompt: "two" });
    expect(opened.said(1).at(-2)).toBe("assistant: One.");
    expect(opened.said(2)).toEqual(["user: one", handoff, permissions, environment, "user: two"]);
  });

  it("counts the prompt that is to come, which is never cut", async () => {
    const prompt = "long ".repeat(1000);
    await using opened = await open([answer(500, messageDone("One.")), summary, answer(200)], { compaction });
    await opened.conversation.runTurn({ prompt: "one" });
    await opened.conversation.runTurn({ prompt });
    expect(opened.requests).toHaveLength(3);
    expect(opened.said(2).at(-1)).toBe(`user: ${prompt}`);
  });
});

describe("compacting on demand", () => {
  it("makes the next turn begin from the summary", async () => {
    await using opened = await open([
      answer(100, messageDone("One.")),
      summary,
      answer(200, messageDone("Two.")),
    ]);
    await opened.conversation.runTurn({ prompt: "one" });
    const outcome = await opened.conversation.compact();
    expect(outcome).toEqual({ kind: "compacted", tokensBefore: 100, tokensAfter: expect.any(Number) });
    await opened.conversation.runTurn({ prompt: "two" });
    expect(opened.said(2)).toEqual(["user: one", handoff, permissions, environment, "user: two"]);
  });

  it("asks in the user's words where there are some", async () => {
    await using opened = await open([answer(100, messageDone("One.")), summary], {
      compaction: { prompt: "Sum it up, matey." },
    });
    await opened.conversation.runTurn({ prompt: "one" });
    await opened.conversation.compact();
    expect(opened.said(1).at(-1)).toBe("user: Sum it up, matey.");
  });

  it("has nothing to do before the model has said anything, and right after it was done", async () => {
    await using opened = await open([answer(100, messageDone("One.")), summary]);
    expect(await opened.conversation.compact()).toEqual({ kind: "nothing" });
    await opened.conversation.runTurn({ prompt: "one" });
    await opened.conversation.compact();
    expect(await opened.conversation.compact()).toEqual({ kind: "nothing" });
    expect(opened.requests).toHaveLength(2);
  });

  it("can be interrupted, and then nothing has changed", async () => {
    const hang: Reply = { kind: "stream", events: [created(), messageDone("All")], ending: "hang" };
    await using opened = await open([
      answer(100, messageDone("One.")),
      hang,
      answer(200, messageDone("Two.")),
    ]);
    await opened.conversation.runTurn({ prompt: "one" });
    const stop = new AbortController();
    const compacting = opened.conversation.compact({ signal: stop.signal });
    while (opened.requests.length < 2) await sleep(5);
    await expect(opened.conversation.runTurn({ prompt: "meanwhile" })).rejects.toThrow("one turn at a time");
    stop.abort();
    expect(await compacting).toEqual({ kind: "interrupted" });
    await opened.conversation.runTurn({ prompt: "two" });
    expect(opened.said(2, 2)).toEqual(["user: one", "assistant: One.", "user: two"]);
  });

  it("that fails says why, and leaves the conversation as it was", async () => {
    const mute = answer(100, messageDone("  "));
    await using opened = await open([
      answer(100, messageDone("One.")),
      mute,
      answer(200, messageDone("Two.")),
    ]);
    await opened.conversation.runTurn({ prompt: "one" });
    expect(await opened.conversation.compact()).toMatchObject({
      kind: "failed",
      error: { code: "model.failed", message: expect.stringMatching(/without any text/) },
    });
    await opened.conversation.runTurn({ prompt: "two" });
    expect(opened.said(2, 2)).toEqual(["user: one", "assistant: One.", "user: two"]);
    expect(opened.records.some(({ type }) => type === "compacted")).toBe(false);
  });

  it("by itself is a warning where it fails, and the turn goes on with all that was said", async () => {
    const refused: Reply = { kind: "status", status: 400, body: { error: { message: "no such parameter" } } };
    await using opened = await open([answer(1000, call()), refused, answer(1000, messageDone("Done."))], {
      compaction,
    });
    const { status } = await opened.conversation.runTurn({ prompt: "one" });
    expect(status).toBe("completed");
    expect(opened.said(2, 2)).toEqual(["user: one", "function_call", "function_call_output"]);
    expect(opened.events.filter(isAbout).at(-1)).toMatchObject({
      message: expect.stringMatching(/could not be compacted and goes on as it is: .*no such parameter/),
    });
  });
});

describe("an endpoint that says the conversation is too long", () => {
  const inStream: Reply = {
    kind: "stream",
    events: [
      created(),
      {
        type: "response.failed",
        response: { error: { code: "context_length_exceeded", message: "too long" } },
      },
    ],
  };

  it.each([
    ["at once", tooLong],
    ["within a response", inStream],
  ])("%s is given a summary, and the turn goes on", async (_, refusal) => {
    await using opened = await open([
      answer(100, call()),
      refusal,
      summary,
      answer(200, messageDone("Done.")),
    ]);
    const result = await opened.conversation.runTurn({ prompt: "do it" });
    expect(result).toMatchObject({ status: "completed", lastMessage: "Done." });
    expect(opened.said(3)).toEqual([permissions, environment, "user: do it", handoff]);
    expect(opened.events.filter(isAbout)[0]).toEqual({ kind: "compaction-started", reason: "overflow" });
  });

  it("of the summary's request, too, is asked with one item less, and then with two less", async () => {
    const replies = [
      answer(100, call()),
      tooLong,
      tooLong,
      tooLong,
      summary,
      answer(200, messageDone("Done.")),
    ];
    await using opened = await open(replies);
    await opened.conversation.runTurn({ prompt: "do it" });
    const whole = opened.said(2);
    expect(opened.said(3)).toEqual(whole.slice(1));
    expect(opened.said(4)).toEqual(whole.slice(3));
    expect(opened.said(5)).toEqual([permissions, environment, "user: do it", handoff]);
  });

  it("of everything ends the turn, and nothing is lost", async () => {
    await using opened = await open([answer(100, call()), tooLong]);
    const result = await opened.conversation.runTurn({ prompt: "do it" });
    expect(result).toMatchObject({ status: "failed", error: { message: expect.stringMatching("too long") } });
    expect(opened.records.some(({ type }) => type === "compacted")).toBe(false);
  });

  it("of what a summary left ends the turn: once has to do", async () => {
    await using opened = await open([answer(100, call()), tooLong, summary, tooLong]);
    const result = await opened.conversation.runTurn({ prompt: "do it" });
    expect(result).toMatchObject({ status: "failed", error: { message: expect.stringMatching("too long") } });
    expect(opened.requests).toHaveLength(4);
  });

  it("of a prompt alone is believed", async () => {
    await using opened = await open([tooLong]);
    const result = await opened.conversation.runTurn({ prompt: "x".repeat(1000) });
    expect(result).toMatchObject({ status: "failed" });
    expect(opened.requests).toHaveLength(1);
  });
});

it("over Chat Completions a conversation is summed up as well, in a request that has no word of tools", async () => {
  const replies = [
    turn({ calls: [{ id: "c1", name: "shell_command", args: { command: "echo hi" } }] }),
    turn({ text: "All is well." }),
    turn({ text: "Done." }),
  ];
  const options = { provider: { wireApi: "chat" as const }, compaction: { autoCompactTokens: 100 } };
  await using opened = await open(replies, options);
  const result = await opened.conversation.runTurn({ prompt: "do it" });
  expect(result).toMatchObject({ status: "completed", lastMessage: "Done." });
  const [, asked, next] = opened.requests;
  expect(asked?.body).not.toHaveProperty("tools");
  expect(asked?.body.messages.at(-1)).toMatchObject({ role: "user", content: defaultCompactPrompt });
  expect(JSON.stringify(next?.body.messages)).toMatch(/do it.*All is well\./);
  expect(next?.body.messages.some(({ role }) => role === "tool")).toBe(false);
});

it("a small window is not filled with what the user said", async () => {
  const replies = [answer(100, messageDone("One.")), summary, answer(200, messageDone("Two."))];
  await using opened = await open(replies, { compaction: { contextWindowTokens: 4000 } });
  await opened.conversation.runTurn({ prompt: "x".repeat(40_000) });
  await opened.conversation.compact();
  await opened.conversation.runTurn({ prompt: "two" });
  expect(JSON.stringify(opened.requests[2]?.body.input[0]).length).toBeLessThan(4200);
});

it("a summary of a summary keeps no older one", () => {
  const first = compactedItems([], "first", { context: [], keptTokens: 100 });
  const second = compactedItems(first, "second", { context: [], keptTokens: 100 });
  expect(JSON.stringify(second)).not.toContain("first");
});
