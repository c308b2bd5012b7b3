import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { createModelClient } from "../../../src/agent/model/create-model-client.js";
import type { ModelProvider, WireApi } from "../../../src/agent/model/provider.js";
import { runAgent } from "../../../src/agent/run-agent.js";
import type { AgentEvent } from "../../../src/agent/turn/events.js";
import { MemorySandbox } from "../../support/memory-sandbox.js";
import {
  chatEvents,
  chatFinish,
  frame,
  localProvider,
  type ReceivedRequest,
  type Reply,
  responsesEvents,
  type ScriptedTurn,
  startResponsesServer,
  turn,
} from "../../support/responses-server.js";
import { sampled } from "../../support/samples.js";

const folder = mkdtempSync(join(tmpdir(), "brig-broken-"));
let runs = 0;

afterAll(() => {
  rmSync(folder, { recursive: true });
});

/** A turn that leaves a line in the file `runs` of the working directory, once for each time that it is run. */
function leaving(...lines: string[]): ScriptedTurn {
  return {
    text: "I write.",
    calls: lines.map((line) => ({
      id: `call-${line}`,
      name: "shell",
      args: { command: ["/bin/sh", "-c", `echo ${line} >> runs`] },
    })),
  };
}

async function run(
  answer: readonly Reply[] | ((request: ReceivedRequest) => Reply),
  {
    signal,
    turnTimeoutMs,
    contextWindowTokens,
    ...provider
  }: Partial<ModelProvider> & {
    signal?: AbortSignal;
    turnTimeoutMs?: number;
    contextWindowTokens?: number;
  } = {},
) {
  await using server = await startResponsesServer(answer);
  const cwd = join(folder, String(runs++));
  mkdirSync(cwd);
  const events: AgentEvent[] = [];
  const result = await runAgent({
    prompt: "write it",
    model: createModelClient({
      provider: localProvider(server.url, { maxStreamRetries: 5, ...provider }),
      model: "m",
      threadId: "t",
    }),
    sandbox: Promise.resolve(new MemorySandbox()),
    setting: {
      cwd,
      sandboxMode: "workspace-write",
      network: { kind: "none" },
      writableRoots: [],
      shell: "bash",
      timezone: "UTC",
    },
    random: () => 0,
    signal,
    turnTimeoutMs,
    compaction: { contextWindowTokens },
    onEvent: (event) => events.push(event),
  });
  const file = join(cwd, "runs");
  const lines = existsSync(file) ? readFileSync(file, "utf8").trimEnd().split("\n") : [];
  return { result, events, lines, requests: server.requests };
}

/** The ids of the calls whose outputs a request has. */
function answeredIn({ body }: ReceivedRequest): unknown[] {
  return body.messages !== undefined
    ? body.messages.flatMap(({ role, tool_call_id: id }) => (role === "tool" ? [id] : []))
    : body.input.flatMap(({ type, call_id: id }) => (type === "function_call_output" ? [id] : []));
}

/** Like a model: calls what the conversation has no output of, and is done when there is nothing left. */
function modelThatWants(lines: readonly string[], faults: (left: readonly string[]) => object) {
  return (request: ReceivedRequest): Reply => {
    const answered = answeredIn(request);
    const left = lines.filter((line) => !answered.includes(`call-${line}`));
    return left.length === 0 ? turn({ text: "Done." }) : turn(leaving(...left), faults(left));
  };
}

// These tests wait for most of their time: they share nothing, and wait together.
describe.concurrent.each<WireApi>(["responses", "chat"])(
  "a stream that breaks over the wire %s",
  (wireApi) => {
    const wanted = ["one", "two"];
    const bytes = Buffer.from(
      (wireApi === "chat" ? chatEvents : responsesEvents)(leaving(...wanted))
        .map(frame)
        .join(""),
    );

    // By itself: it keeps the machine busy, and others have limits of time.
    it.sequential("never makes a call run twice, wherever it is cut", async () => {
      const { seed, some: places } = sampled(Array.from(bytes, (_, place) => place).slice(1, -20), {
        short: 10,
        deep: 200,
      });
      const cutAt = async (place: number) => {
        let isFirst = true;
        const answer = modelThatWants(wanted, () => {
          const faults = isFirst ? { cutAfterBytes: place } : {};
          isFirst = false;
          return faults;
        });
        const { result, lines } = await run(answer, { wireApi });
        return { place, lastMessage: result.lastMessage, lines: lines.toSorted() };
      };
      const cuts = [...places, bytes.length - 20, bytes.length - 1];
      // So many at a time as one machine can run.
      for (let from = 0; from < cuts.length; from += 20) {
        const next = cuts.slice(from, from + 20);
        expect(await Promise.all(next.map(cutAt)), `BRIG_TEST_SEED=${seed}`).toEqual(
          next.map((place) => ({ place, lastMessage: "Done.", lines: wanted })),
        );
      }
    });

    it("keeps the call that was complete, and asks again with its output", async () => {
      const cut =
        wireApi === "responses"
          ? bytes.indexOf('"call-two"')
          : bytes.indexOf("tool_calls", bytes.indexOf('"finish_reason"'));
      const replies: Reply[] = [turn(leaving(...wanted), { cutAfterBytes: cut }), turn({ text: "Done." })];
      const { lines, requests, events } = await run(replies, { wireApi });
      const complete = wireApi === "responses" ? ["one"] : [];
      expect(lines).toEqual(complete);
      expect(requests.map(answeredIn)).toEqual([[], complete.map((line) => `call-${line}`)]);
      expect(events.filter(({ kind }) => kind === "reconnecting")).toHaveLength(1);
    });

    it("at an event that cannot be read makes no call of the rest", async () => {
      const events = (wireApi === "chat" ? chatEvents : responsesEvents)(leaving("one/two"));
      const damaged = events.map((event) => {
        const isPart = frame(event).includes(wireApi === "chat" ? "/tw" : "output_item.done");
        return isPart ? frame(event).replace("data: {", "data: {{") : event;
      });
      expect(damaged).not.toEqual(events);
      const replies: Reply[] = [
        { kind: "stream", events: damaged },
        turn(leaving("one/two")),
        turn({ text: "Done." }),
      ];
      const { result, lines, events: told } = await run(replies, { wireApi });
      expect(result).toMatchObject({ status: "completed", lastMessage: "Done." });
      expect(lines).toEqual(["one/two"]);
      expect(told.filter(({ kind }) => kind === "reconnecting")).toHaveLength(1);
    });

    it("is opened no more often than it may be, and its calls have run once for all that", async () => {
      const answer = modelThatWants(["one"], () => ({ ending: "break" }));
      const { result, lines, requests } = await run(
        (request) => {
          const reply = answer(request);
          return answeredIn(request).length === 0 ? reply : turn({ text: "Do" }, { cutAfterBytes: 40 });
        },
        { wireApi, maxStreamRetries: 2 },
      );
      expect(result).toMatchObject({ status: "failed", error: { code: "model.unreachable" } });
      // One that was answered, one that broke, and two more.
      expect(requests).toHaveLength(4);
      expect(lines).toEqual(["one"]);
    });

    it("by a rate limit is opened again after the time that it names", async () => {
      const { result, events, requests } = await run(
        [
          { kind: "status", status: 429, headers: { "retry-after-ms": "30" } },
          { kind: "status", status: 429 },
          turn({ text: "Done." }),
        ],
        { wireApi },
      );
      expect(result.status).toBe("completed");
      expect(requests).toHaveLength(3);
      const delays = events.flatMap((event) => (event.kind === "reconnecting" ? [event.delayMs] : []));
      expect(delays).toEqual([30, 360]);
    });

    it("by an endpoint that is down for longer than a request is sent again is opened again", async () => {
      const down: Reply = { kind: "status", status: 502, headers: { "retry-after-ms": "1" } };
      const { result, events, requests } = await run(
        [turn(leaving("one")), down, down, { kind: "hang-up" }, turn({ text: "Done." })],
        { wireApi, maxRequestRetries: 1 },
      );
      expect(result).toMatchObject({ status: "completed", lastMessage: "Done." });
      expect(requests).toHaveLength(5);
      expect(events.filter(({ kind }) => kind === "reconnecting")).toMatchObject([
        { attempt: 1, reason: "HTTP 502 Bad Gateway" },
      ]);
    });

    it.each<[string, Reply]>([
      ["sends no answer", turn({ text: "h" }, { delayMs: 60_000 })],
      [
        "sends nothing but comments",
        { kind: "stream", events: [], ending: "hang", thenRepeats: { text: ": ping\n\n", everyMs: 20 } },
      ],
    ])("is given up where the endpoint twice %s", async (_, reply) => {
      const { result, requests } = await run([reply], {
        wireApi,
        streamIdleTimeoutMs: 1500,
        maxRequestRetries: 4,
      });
      expect(result).toMatchObject({ status: "failed", error: { code: "model.unreachable" } });
      expect(requests).toHaveLength(2);
    });

    it("is asked for again after one silence", async () => {
      const silent = turn({ text: "h" }, { delayMs: 60_000 });
      const { result } = await run([silent, turn({ text: "Done." })], { wireApi, streamIdleTimeoutMs: 3000 });
      expect(result).toMatchObject({ status: "completed", lastMessage: "Done." });
    });

    it("ends with the time that the turn has, though every response is whole", async () => {
      const { result } = await run(() => turn(leaving("again")), { wireApi, turnTimeoutMs: 700 });
      expect(result).toMatchObject({
        status: "failed",
        error: { code: "turn.timed-out", hint: expect.stringContaining("turn_timeout_ms") },
      });
    });

    it.each([
      [
        "quota",
        { status: 429, body: { error: { code: "insufficient_quota", message: "pay" } } },
        "model.quota",
      ],
      ["limit, for good", { status: 429, headers: { "retry-after": "86400" } }, "model.rate-limit"],
      ["key", { status: 401 }, "model.auth"],
    ])("by a %s fails the turn at once", async (_, reply, code) => {
      const { result, requests } = await run([{ kind: "status", ...reply }], { wireApi });
      expect(result).toMatchObject({ status: "failed", error: { code } });
      expect(requests).toHaveLength(1);
    });

    it.each<[string, Reply]>([
      ["until it is opened again", { kind: "status", status: 429, headers: { "retry-after": "60" } }],
      ["for its next event", { kind: "stream", events: [": nothing\n\n"], ending: "hang" }],
      ["for its first byte", turn({ text: "h" }, { delayMs: 60_000 })],
    ])("is not waited for after ctrl-C: %s", async (_, reply) => {
      // Each of these waits is a minute, and longer than the test may take.
      const controller = new AbortController();
      const answer = () => {
        setTimeout(() => controller.abort(new Error("ctrl-C")), 150);
        return reply;
      };
      const { result } = await run(answer, { wireApi, signal: controller.signal });
      expect(result.status).toBe("interrupted");
    });
  },
);

describe.concurrent.each<WireApi>(["responses", "chat"])(
  "an answer that is cut short over the wire %s",
  (wireApi) => {
    const reply = (usage: { input: number; output: number }): Reply => {
      const { input, output } = usage;
      const text = { text: "I begin." };
      const chat = { prompt_tokens: input, completion_tokens: output };
      const responses = { input_tokens: input, output_tokens: output };
      const details = { incomplete_details: { reason: "max_output_tokens" }, usage: responses };
      return {
        kind: "stream",
        events:
          wireApi === "chat"
            ? [...chatEvents(text).slice(0, -3), chatFinish("length"), { choices: [], usage: chat }]
            : [
                ...responsesEvents({ ...text, ...leaving("one") }).slice(0, -1),
                { type: "response.incomplete", response: details },
              ],
      };
    };

    it("by a limit fails the turn, and what was complete is kept", async () => {
      const { result, events, lines, requests } = await run([reply({ input: 10, output: 5 })], { wireApi });
      expect(requests).toHaveLength(1);
      expect(result).toMatchObject({
        status: "failed",
        error: { code: "model.failed", hint: expect.stringContaining("limit of output tokens") },
        usage: { inputTokens: 10, outputTokens: 5 },
      });
      expect(result.lastMessage).toMatch(/^I (begin|write)\.$/);
      // Only over this wire does a call say that it is complete.
      expect(lines).toEqual(wireApi === "responses" ? ["one"] : []);
      expect(JSON.stringify(events)).not.toContain("aborted");
    });

    it("by the end of the context window is asked for again, once the conversation is shorter", async () => {
      const replies = [reply({ input: 950, output: 50 }), turn({ text: "So far." }), turn({ text: "Done." })];
      const { result, events } = await run(replies, { wireApi, contextWindowTokens: 1000 });
      expect(result).toMatchObject({ status: "completed", lastMessage: "Done." });
      expect(events).toContainEqual(expect.objectContaining({ kind: "compacted", reason: "overflow" }));
    });
  },
);
