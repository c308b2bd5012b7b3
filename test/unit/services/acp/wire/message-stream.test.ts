import { PassThrough } from "node:stream";
import type { AnyMessage } from "@agentclientprotocol/sdk";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { messageStream } from "../../../../../src/services/acp/wire/message-stream.js";

function open() {
  const input = new PassThrough();
  const output = new PassThrough();
  const over = new AbortController();
  const stream = messageStream({ input, output, signal: over.signal });
  const sent = () =>
    String(output.read() ?? "")
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line));
  return { input, output, stream, over, sent };
}

/** Returns everything that the SDK reads from an input. */
async function received(text: string | Uint8Array): Promise<{ messages: AnyMessage[]; answers: unknown[] }> {
  const { input, stream, sent } = open();
  input.end(text);
  const messages: AnyMessage[] = [];
  for await (const message of stream.readable) messages.push(message);
  return { messages, answers: sent() };
}

const request = (id: unknown) => JSON.stringify({ jsonrpc: "2.0", id, method: "m", params: {} });

describe("what comes in", () => {
  it("is passed on as it is, also with a field that nobody knows", async () => {
    const { messages, answers } = await received(
      `\n${request(1)}\n{"jsonrpc":"2.0","method":"n","more":1}\n`,
    );
    expect(messages).toEqual([
      { jsonrpc: "2.0", id: 1, method: "m", params: {} },
      { jsonrpc: "2.0", method: "n", more: 1 },
    ]);
    expect(answers).toEqual([]);
  });

  it.each([
    ["no JSON", "{", -32_700],
    ["a list", "[]", -32_600],
    ["a text", '"x"', -32_600],
    ["null", "null", -32_600],
    ["another JSON-RPC", '{"id":1,"method":"m"}', -32_600],
    ["an object as id", request({}), -32_600],
    ["a very long id", request("x".repeat(2000)), -32_600],
    ["a method that is no text", '{"jsonrpc":"2.0","id":1,"method":5}', -32_600],
    ["neither method nor id", '{"jsonrpc":"2.0","result":5}', -32_600],
    [
      "deep nesting",
      `{"jsonrpc":"2.0","id":1,"method":"m","params":${"[".repeat(100)}${"]".repeat(100)}}`,
      -32_600,
    ],
    [
      "very many values",
      `{"jsonrpc":"2.0","id":1,"method":"m","params":[${"0,".repeat(200_000)}0]}`,
      -32_600,
    ],
  ])("%s is answered, and what follows is read", async (_, line, code) => {
    const { messages, answers } = await received(`${line}\n${request(2)}\n`);
    expect(messages).toMatchObject([{ id: 2 }]);
    expect(answers).toMatchObject([{ jsonrpc: "2.0", id: null, error: { code } }]);
  });

  it("that answers nothing that was asked is dropped", async () => {
    const { input, stream } = open();
    const writer = stream.writable.getWriter();
    await writer.write({ jsonrpc: "2.0", id: 7, method: "ask" });
    input.end(
      '{"jsonrpc":"2.0","id":"\\u001b[2J","result":1}\n{"jsonrpc":"2.0","id":7,"result":1}\n{"jsonrpc":"2.0","id":7,"result":2}\n',
    );
    const messages: AnyMessage[] = [];
    for await (const message of stream.readable) messages.push(message);
    expect(messages).toEqual([{ jsonrpc: "2.0", id: 7, result: 1 }]);
  });

  it("is refused while too many requests wait, and read again when they do not", async () => {
    const { input, stream, sent } = open();
    input.write(Array.from({ length: 300 }, (_, id) => `${request(id)}\n`).join(""));
    const reader = stream.readable.getReader();
    for (let id = 0; id < 256; id++) expect((await reader.read()).value).toMatchObject({ id });
    input.write('{"jsonrpc":"2.0","method":"last"}\n');
    expect((await reader.read()).value).toMatchObject({ method: "last" });
    expect(sent().map(({ id }) => id)).toEqual(Array.from({ length: 44 }, (_, at) => 256 + at));
    await stream.writable.getWriter().write({ jsonrpc: "2.0", id: 0, result: {} });
    input.end(`${request("next")}\n`);
    expect((await reader.read()).value).toMatchObject({ id: "next" });
    expect((await reader.read()).done).toBe(true);
  });

  it("is never a reason to fail, whatever it is", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.oneof(
            fc.uint8Array({ maxLength: 50 }),
            fc.json().map((one) => Buffer.from(`${one}\n`)),
          ),
        ),
        async (pieces) => {
          const { messages } = await received(Buffer.concat(pieces));
          for (const message of messages) expect(message.jsonrpc).toBe("2.0");
        },
      ),
    );
  });
});

describe("what goes out", () => {
  it("waits for a reader, but not when the service is over", async () => {
    const { stream, over, output } = open();
    const writer = stream.writable.getWriter();
    const large = { jsonrpc: "2.0" as const, method: "m", params: "x".repeat(1_000_000) };
    const written = writer.write(large);
    let isWritten = false;
    void written.then(() => {
      isWritten = true;
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(isWritten).toBe(false);
    over.abort();
    await written;
    expect(output.writableLength + output.readableLength).toBeGreaterThan(1_000_000);
  });

  it("is an error instead of an answer that is too long", async () => {
    const { input, stream, sent } = open();
    input.write(`${request(1)}\n`);
    await stream.readable.getReader().read();
    await stream.writable.getWriter().write({ jsonrpc: "2.0", id: 1, result: "x".repeat(9_000_000) });
    expect(sent()).toMatchObject([{ id: 1, error: { code: -32_603 } }]);
  });
});
