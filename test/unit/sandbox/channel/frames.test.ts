import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isBrigError } from "../../../../src/errors.js";
import { encodeFrame, FrameParser, isCounted } from "../../../../src/sandbox/channel/frames.js";
import { FrameType, MAX_PAYLOAD_FROM_RUNNER } from "../../../../src/sandbox/channel/protocol.js";
import { chunked, chunking } from "./chunking.js";

interface Parsed {
  type: number;
  channel: number;
  payload: Buffer;
}

const typesFromRunner = Object.values(FrameType).filter((type) => type >= 0x80);

const aFrame = fc
  .record({
    type: fc.constantFrom(...typesFromRunner),
    number: fc.integer({ min: 1, max: 0xffff_ffff }),
    payload: fc.uint8Array({ maxLength: 3000 }),
  })
  .map(({ type, number, payload }) => ({
    type,
    channel: isCounted(type) ? number : 0,
    payload: Buffer.from(payload),
  }));

function parse(chunks: readonly Buffer[]): Parsed[] {
  const parser = new FrameParser();
  const parsed: Parsed[] = [];
  for (const chunk of chunks)
    parser.push(chunk, (frame) => parsed.push({ ...frame, payload: Buffer.from(frame.payload) }));
  return parsed;
}

const encode = (frames: readonly Parsed[]) =>
  Buffer.concat(frames.map(({ type, channel, payload }) => encodeFrame(type, channel, payload)));

describe("frames from the runner", () => {
  it("parse the same in whatever pieces they come", () => {
    fc.assert(
      fc.property(fc.array(aFrame, { maxLength: 20 }), chunking, (frames, cuts) => {
        expect(parse(chunked(encode(frames), cuts))).toEqual(frames);
      }),
    );
  });

  it("parse the same byte by byte", () => {
    fc.assert(
      fc.property(fc.array(aFrame, { maxLength: 3 }), (frames) => {
        const bytes = encode(frames);
        expect(parse(Array.from(bytes, (byte) => Buffer.of(byte)))).toEqual(frames);
      }),
      { numRuns: 30 },
    );
  });

  it("may be of the largest size, across two pieces too", () => {
    const frames = [
      { type: FrameType.stdout, channel: 1, payload: Buffer.alloc(MAX_PAYLOAD_FROM_RUNNER, 1) },
      { type: FrameType.exit, channel: 1, payload: Buffer.alloc(44) },
    ];
    const bytes = encode(frames);
    for (const at of [1, 11, 12, 13, 30_000, bytes.length - 57, bytes.length - 56, bytes.length - 1])
      expect(encode(parse([bytes.subarray(0, at), bytes.subarray(at)])).equals(bytes)).toBe(true);
  });

  it("that are noise are refused and nothing else", () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 100 }), { maxLength: 20 }), (chunks) => {
        try {
          parse(chunks.map((chunk) => Buffer.from(chunk)));
        } catch (error) {
          expect(isBrigError(error, "protocol.invalid")).toBe(true);
        }
      }),
    );
  });

  it("that are right are handed over before noise behind them is refused", () => {
    fc.assert(
      fc.property(fc.array(aFrame, { maxLength: 5 }), chunking, (frames, cuts) => {
        const parser = new FrameParser();
        const parsed: Parsed[] = [];
        const bytes = Buffer.concat([encode(frames), Buffer.alloc(12, 0xff)]);
        expect(() => {
          for (const chunk of chunked(bytes, cuts))
            parser.push(chunk, (frame) => parsed.push({ ...frame, payload: Buffer.from(frame.payload) }));
        }).toThrow(/protocol/);
        expect(parsed).toEqual(frames);
      }),
    );
  });

  it.for([
    ["one byte more than the largest", [MAX_PAYLOAD_FROM_RUNNER + 1, FrameType.stdout, 1]],
    ["four gigabytes", [0xffff_ffff, FrameType.stdout, 1]],
    ["a type that is the host's", [4, FrameType.spawn, 1]],
    ["a type that does not exist", [4, 0x99, 1]],
    ["flags", [4, FrameType.stdout | 0x100, 1]],
    ["padding", [4, FrameType.stdout | 0x10000, 1]],
    ["output on the session's channel", [4, FrameType.stdout, 0]],
    ["an ACK on a command's channel", [8, FrameType.ackFromRunner, 5]],
  ] as const)("with %s are refused as soon as the header is there", ([, [length, type, channel]]) => {
    const header = Buffer.alloc(12);
    header.writeUInt32LE(length, 0);
    header.writeUInt32LE(type, 4);
    header.writeUInt32LE(channel, 8);
    for (const cut of [12, 4]) {
      const parser = new FrameParser();
      expect(() => {
        parser.push(header.subarray(0, cut), () => undefined);
        parser.push(header.subarray(cut), () => undefined);
        parser.push(Buffer.alloc(1), () => undefined);
      }).toThrow(expect.objectContaining({ code: "protocol.invalid" }));
    }
  });
});

describe("frames to the runner", () => {
  it("have a header of twelve bytes, little-endian", () => {
    expect(encodeFrame(FrameType.spawn, 0x01020304, Buffer.from("ab")).toString("hex")).toBe(
      "020000001000000004030201" + "6162",
    );
  });

  it("count unless they are the session's own", () => {
    const uncounted = Object.entries(FrameType).filter(([, type]) => !isCounted(type));
    expect(uncounted.map(([name]) => name).sort()).toEqual([
      "ack",
      "ackFromRunner",
      "end",
      "hello",
      "ping",
      "pong",
      "welcome",
    ]);
  });
});
