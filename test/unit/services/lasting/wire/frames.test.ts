import { expect, it } from "vitest";
import { encodeFrame, FRAME, FrameReader } from "../../../../../src/services/lasting/wire/frames.js";

const frames = [
  { type: FRAME.start, payload: Buffer.from("{}") },
  { type: FRAME.input, payload: Buffer.alloc(70_000, "x") },
  { type: FRAME.inputEnd, payload: Buffer.alloc(0) },
];
const sent = Buffer.concat(frames.map(({ type, payload }) => encodeFrame(type, payload)));

it.each([1, 4, 5, 6, 1000, sent.length])(
  "frames that arrive in pieces of %i bytes are the same frames",
  (size) => {
    const reader = new FrameReader();
    const received = [];
    for (let at = 0; at < sent.length; at += size) {
      const some = reader.push(sent.subarray(at, at + size)) ?? [];
      received.push(...some.map(({ type, payload }) => ({ type, payload: Buffer.from(payload) })));
    }
    expect(received).toEqual(frames);
  },
);

it("what announces more than is ever sent is no frame", () => {
  const frame = encodeFrame(FRAME.input, "x");
  frame.writeUInt32BE(0xffff_ffff, 1);
  expect(new FrameReader().push(frame)).toBeNull();
  expect(new FrameReader(10).push(encodeFrame(FRAME.stdout, "eleven bytes"))).toBeNull();
});
