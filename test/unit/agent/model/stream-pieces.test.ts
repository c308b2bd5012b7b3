import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { setImmediate } from "node:timers/promises";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ChatReader } from "../../../../src/agent/model/chat/chat-reader.js";
import type { ResponseReader } from "../../../../src/agent/model/endpoint/endpoint-client.js";
import { classifyRefusal, type Refusal } from "../../../../src/agent/model/endpoint/model-failure.js";
import { readServerEvents } from "../../../../src/agent/model/endpoint/server-events.js";
import { BrokenStream } from "../../../../src/agent/model/endpoint/stream-event.js";
import type { ModelEvent } from "../../../../src/agent/model/model-client.js";
import type { WireApi } from "../../../../src/agent/model/provider.js";
import { ResponsesReader } from "../../../../src/agent/model/responses/responses-reader.js";
import { BrigError } from "../../../../src/errors.js";
import { runs } from "../../../support/fuzz.js";
import { chatEvents, frame, responsesEvents, type ScriptedTurn } from "../../../support/responses-server.js";

const readers: Record<WireApi, () => ResponseReader> = {
  responses: () => new ResponsesReader({ keepsIds: false, refused }),
  chat: () =>
    new ChatReader(
      { instructions: "", input: [], tools: [] },
      { refused, onReasoningField: () => undefined },
    ),
};

function refused(refusal: Refusal): never {
  throw classifyRefusal(refusal).error;
}

function bytesOf(wire: WireApi, turn: ScriptedTurn, lineEnd: string): Uint8Array {
  const events = wire === "chat" ? chatEvents(turn) : responsesEvents(turn);
  return Buffer.from(events.map(frame).join("").replaceAll("\n", lineEnd));
}

async function read(wire: WireApi, pieces: readonly Uint8Array[]): Promise<ModelEvent[]> {
  const reader = readers[wire]();
  const events: ModelEvent[] = [];
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const piece of pieces) controller.enqueue(piece);
      controller.close();
    },
  });
  try {
    for await (const data of readServerEvents(body, { idleTimeoutMs: 60_000 }))
      events.push(...reader.read(data));
  } catch (error) {
    if (!(error instanceof BrokenStream)) throw error;
    events.push(...reader.end(error));
  }
  return events;
}

function cut(bytes: Uint8Array, places: readonly number[]): Uint8Array[] {
  const ends = [...new Set(places.map((place) => place % (bytes.length + 1)))].toSorted((a, b) => a - b);
  return [0, ...ends].map((start, index) => bytes.subarray(start, ends[index] ?? bytes.length));
}

const turns: fc.Arbitrary<ScriptedTurn> = fc.record({
  reasoning: fc.string({ unit: "grapheme", minLength: 1 }),
  text: fc.string({ unit: "grapheme", minLength: 1 }),
  calls: fc.uniqueArray(
    fc.record({
      id: fc.string({ minLength: 1, maxLength: 8 }),
      name: fc.constantFrom("shell", "grep_files"),
      args: fc.dictionary(fc.string({ maxLength: 5 }), fc.string({ unit: "grapheme" }), {
        noNullPrototype: true,
      }),
    }),
    { maxLength: 3, selector: ({ id }) => id },
  ),
});

describe.each<WireApi>(["responses", "chat"])("a stream over the wire %s", (wire) => {
  it("means the same, whatever pieces and lines it comes in", async () => {
    await fc.assert(
      fc.asyncProperty(
        turns,
        fc.array(fc.nat(100_000), { maxLength: 60 }),
        fc.constantFrom("\n", "\r\n", "\r"),
        async (turn, places, lineEnd) => {
          const whole = await read(wire, [bytesOf(wire, turn, "\n")]);
          expect(whole.at(-1)?.kind).toBe("completed");
          expect(await read(wire, cut(bytesOf(wire, turn, lineEnd), places))).toEqual(whole);
        },
      ),
      { numRuns: runs({ short: 30, deep: 300 }) },
    );
  });

  it("means the same byte by byte", async () => {
    const turn = { text: "grüße 😀", calls: [{ id: "a", name: "shell", args: { command: ["echo", "ö"] } }] };
    const bytes = bytesOf(wire, turn, "\r\n");
    const single = Array.from(bytes, (_, at) => bytes.subarray(at, at + 1));
    expect(await read(wire, single)).toEqual(await read(wire, [bytes]));
  });
});

describe.each<WireApi>(["responses", "chat"])("what an endpoint sends over the wire %s", (wire) => {
  const json = fc.jsonValue({ maxDepth: 3 });
  const odd = (keys: Record<string, fc.Arbitrary<unknown>>) =>
    fc.oneof(json, fc.record(keys, { requiredKeys: [] }));
  const texts = fc.oneof(fc.string(), json);
  const call = odd({ index: texts, id: texts, function: odd({ name: texts, arguments: texts }) });
  const delta = odd({ content: texts, reasoning: texts, tool_calls: fc.array(call) });
  const itemTypes = ["message", "reasoning", "function_call", "local_shell_call", "other"];
  const item = odd({
    type: fc.constantFrom(...itemTypes),
    call_id: texts,
    id: texts,
    arguments: texts,
    name: texts,
    content: json,
    action: json,
  });
  const events = [
    "response.output_item.done",
    "response.output_text.delta",
    "response.completed",
    "response.failed",
    "response.incomplete",
    "error",
  ];
  const event = odd({
    type: fc.oneof(fc.constantFrom(...events), fc.string()),
    item,
    delta: texts,
    response: odd({ usage: json, error: odd({ code: texts, message: texts }), incomplete_details: json }),
    error: odd({ code: texts, message: texts, type: texts }),
    choices: fc.oneof(json, fc.array(odd({ delta, message: delta, finish_reason: texts }))),
    usage: json,
  });

  it("is understood, skipped or refused, and nothing else", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(event, { maxLength: 6 }), async (sent) => {
        const bytes = Buffer.from(sent.map((each) => `data: ${JSON.stringify(each)}\n\n`).join(""));
        try {
          for (const { kind } of await read(wire, [bytes]))
            expect(["text-delta", "reasoning-delta", "item", "completed", "broken"]).toContain(kind);
        } catch (error) {
          expect(error).toBeInstanceOf(BrigError);
        }
      }),
      { numRuns: runs({ short: 150, deep: 2000 }) },
    );
  });
});

it("a thousand calls at once are enough", async () => {
  const calls = Array.from({ length: 1001 }, (_, index) => ({
    index,
    id: String(index),
    function: { name: "s" },
  }));
  const bytes = Buffer.from(frame({ choices: [{ delta: { tool_calls: calls } }] }));
  await expect(read("chat", [bytes])).rejects.toMatchObject({ code: "model.failed" });
});

describe("an event", () => {
  const readAll = async (pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>) => {
    const data: string[] = [];
    const body = ReadableStream.from(pieces) as ReadableStream<Uint8Array>;
    for await (const event of readServerEvents(body, { idleTimeoutMs: 60_000 })) data.push(event);
    return data;
  };

  it.each<[string, string, string[]]>([
    ["of several lines of data is one", "data: a\ndata: b\n\n", ["a\nb"]],
    ["keeps what follows the first space", "data:  a \n\n", [" a "]],
    ["needs no space", "data:a\n\n", ["a"]],
    ["without data is none", "event: x\nid: 1\n\n: comment\n\n", []],
    ["that nothing ends is dropped", "data: a\n\ndata: b\n", ["a"]],
  ])("%s", async (_, text, data) => {
    expect(await readAll([Buffer.from(text)])).toEqual(data);
  });

  it("of several lines stays one when a line's two-character end is cut", async () => {
    const bytes = Buffer.from("data: a\r\ndata: b\r\n\r\ndata: c\r\n\r\n");
    expect(await readAll(Array.from(bytes, (_, at) => bytes.subarray(at, at + 1)))).toEqual(["a\nb", "c"]);
  });

  it("that came while the process could not look is read, however late it is", async () => {
    const folder = mkdtempSync(join(tmpdir(), "brig-late-"));
    const [go, gone] = [join(folder, "go"), join(folder, "gone")];
    const script = 'until [ -e "$1" ]; do sleep 0.01; done; printf "data: a\\n\\n"; : > "$2"';
    const sender = spawn("sh", ["-c", script, "sh", go, gone]);
    const body = Readable.toWeb(sender.stdout) as ReadableStream<Uint8Array>;
    const idleTimeoutMs = 1000;
    const first = readServerEvents(body, { idleTimeoutMs })[Symbol.asyncIterator]().next();
    await setImmediate();
    const deadline = performance.now() + idleTimeoutMs;
    writeFileSync(go, "");
    // The thread sleeps: its event loop stands still.
    const never = new Int32Array(new SharedArrayBuffer(4));
    while (!existsSync(gone) || performance.now() <= deadline) Atomics.wait(never, 0, 0, 10);
    expect(await first).toEqual({ done: false, value: "a" });
    rmSync(folder, { recursive: true });
  });

  it("of 20 MB in small pieces is read whole", async () => {
    const piece = Buffer.from("x".repeat(16 * 1024));
    const pieces = function* () {
      yield Buffer.from("data: ");
      for (let count = 0; count < 1280; count++) yield piece;
      yield Buffer.from("\n\n");
    };
    const [data] = await readAll(pieces());
    expect(data).toHaveLength(1280 * piece.length);
  });

  it.each([
    ["in one line", () => Buffer.from("x".repeat(1024 * 1024))],
    ["in many lines", () => Buffer.from(`data: ${"x".repeat(1024)}\n`.repeat(1024))],
  ])("without an end is refused after 64 MiB, %s", async (_, piece) => {
    const bytes = piece();
    const endless = function* () {
      for (let count = 0; count < 80; count++) yield bytes;
    };
    await expect(readAll(endless())).rejects.toMatchObject({
      code: "model.failed",
      message: "the endpoint sent an event of more than 64 MiB",
    });
  });
});
