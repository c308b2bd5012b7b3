import { Readable } from "node:stream";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { progressLines } from "../../../../../src/sandbox/docker/calls/progress-lines.js";

async function read(bytes: Uint8Array[]) {
  const lines = [];
  for await (const line of progressLines(Readable.from(bytes))) lines.push(line);
  return lines;
}

const bytes = (...messages: object[]) =>
  Buffer.from(messages.map((message) => `${JSON.stringify(message)}\r\n`).join(""));

describe("progressLines", () => {
  it("joins a build's text that comes in pieces of a line", async () => {
    const source = bytes(
      { stream: "Step 1" },
      { stream: "/2 : FROM x\n" },
      { stream: "\n" },
      { stream: "end" },
    );
    expect(await read([source])).toEqual([
      { kind: "progress", text: "Step 1/2 : FROM x" },
      { kind: "progress", text: "end" },
    ]);
  });

  it("shows a line as a terminal would leave it", async () => {
    const source = bytes({ stream: "\u001b[91mReading 5%\rReading 100%\u001b[0m\n" });
    expect(await read([source])).toEqual([{ kind: "progress", text: "Reading 100%" }]);
  });

  it("names the layer a pull speaks of", async () => {
    const source = bytes({ status: "Downloading", id: "ab12", progress: "[=>  ]" });
    expect(await read([source])).toEqual([{ kind: "progress", text: "ab12: Downloading [=>  ]" }]);
  });

  it("ends with the error", async () => {
    const source = bytes({ stream: "a\n" }, { error: "no space left\n", errorDetail: {} }, { stream: "b\n" });
    expect(await read([source])).toEqual([
      { kind: "progress", text: "a" },
      { kind: "error", text: "no space left" },
    ]);
  });

  it("gives the same lines however the bytes are cut", async () => {
    const source = bytes({ stream: "größe ✓\n" }, { status: "fertig – ja" }, { stream: "x\ny\n" });
    const whole = await read([source]);
    expect(whole).toHaveLength(4);
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(source.length), { maxLength: 8 }), async (cuts) => {
        const edges = [0, ...cuts.toSorted((a, b) => a - b), source.length];
        const pieces = edges.slice(1).map((end, at) => source.subarray(edges[at], end));
        expect(await read(pieces.filter((piece) => piece.length > 0))).toEqual(whole);
      }),
    );
  });
});
