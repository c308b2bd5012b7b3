import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isBrigError } from "../../../../src/errors.js";
import { Demultiplexer } from "../../../../src/sandbox/channel/frames.js";
import { chunked, chunking } from "./chunking.js";
import { multiplexed } from "./fake-runner.js";

const piece = fc.record({ stream: fc.constantFrom(1, 2), data: fc.uint8Array({ maxLength: 500 }) });

function demultiplex(chunks: readonly Buffer[]): { stdout: string; stderr: string } {
  const demultiplexer = new Demultiplexer();
  const streams = { stdout: "", stderr: "" };
  for (const chunk of chunks)
    demultiplexer.push(chunk, (data, isStderr) => {
      streams[isStderr ? "stderr" : "stdout"] += data.toString("hex");
    });
  return streams;
}

describe("the engine's multiplexing", () => {
  it("is undone in whatever pieces it comes", () => {
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 20 }), chunking, (pieces, cuts) => {
        const bytes = Buffer.concat(pieces.map(({ stream, data }) => multiplexed(stream, data)));
        const of = (wanted: number) =>
          pieces
            .filter(({ stream }) => stream === wanted)
            .map(({ data }) => Buffer.from(data).toString("hex"))
            .join("");
        expect(demultiplex(chunked(bytes, cuts))).toEqual({ stdout: of(1), stderr: of(2) });
      }),
    );
  });

  it("passes on what has come of a large piece at once", () => {
    const demultiplexer = new Demultiplexer();
    let bytes = 0;
    const head = multiplexed(1, Buffer.alloc(1_000_000)).subarray(0, 500);
    demultiplexer.push(head, (data) => {
      bytes += data.length;
    });
    expect(bytes).toBe(492);
  });

  it("is refused when it is noise, and nothing else happens", () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 50 }), { maxLength: 20 }), (chunks) => {
        try {
          demultiplex(chunks.map((chunk) => Buffer.from(chunk)));
        } catch (error) {
          expect(isBrigError(error, "protocol.invalid")).toBe(true);
        }
      }),
    );
  });

  it.for([0, 3, 255])("is refused with a stream %i", (stream) => {
    expect(() => demultiplex([multiplexed(stream, Buffer.from("x"))])).toThrow(
      expect.objectContaining({ code: "protocol.invalid" }),
    );
  });

  it("is refused when it announces a piece no engine sends", () => {
    expect(() => demultiplex([Buffer.from("0100000080000000", "hex")])).toThrow(
      expect.objectContaining({ code: "protocol.invalid" }),
    );
  });
});
