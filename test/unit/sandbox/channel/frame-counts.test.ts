import { expect, it } from "vitest";
import { FrameCounts } from "../../../../src/sandbox/channel/frames.js";
import { FrameType } from "../../../../src/sandbox/channel/protocol.js";
import { uint64 } from "./fake-runner.js";

/** The numbers of frames after which an ACK was due, if each of `count` frames has so many bytes. */
function dueAfter(counts: FrameCounts, count: number, bytes = 0): number[] {
  const due: number[] = [];
  const first = Number(counts.received);
  for (let i = 1; i <= count; i++) {
    const ack = counts.receive({ type: FrameType.stdout, channel: 1, payload: Buffer.alloc(bytes) });
    if (ack === null) continue;
    expect(ack).toEqual(uint64(first + i));
    due.push(i);
  }
  return due;
}

it("an ACK is due after 64 frames, and again after 64 more", () => {
  expect(dueAfter(new FrameCounts(), 130)).toEqual([64, 128]);
});

it("an ACK is due after 128 KiB, also of few frames, and again after as much", () => {
  expect(dueAfter(new FrameCounts(), 9, 32 * 1024)).toEqual([4, 8]);
  expect(dueAfter(new FrameCounts(), 5, 32 * 1024 + 1)).toEqual([4]);
  const counts = new FrameCounts();
  expect(dueAfter(counts, 2, 128 * 1024 - 1)).toEqual([2]);
  expect(dueAfter(counts, 2, 128 * 1024 - 1)).toEqual([2]);
  counts.resume();
  expect(dueAfter(counts, 2, 128 * 1024 - 1)).toEqual([2]);
});

it("the frames count anew on a new stream, whose HELLO has acknowledged all of them", () => {
  const counts = new FrameCounts();
  dueAfter(counts, 63, 2080);
  counts.resume();
  expect(dueAfter(counts, 64)).toEqual([64]);
  counts.resume();
  dueAfter(counts, 3, 32 * 1024);
  counts.resume();
  expect(dueAfter(counts, 4, 32 * 1024)).toEqual([4]);
});

it("what is acknowledged is not sent again, and no more can be than was sent", () => {
  const counts = new FrameCounts();
  const frames = ["a", "b", "c"].map((text) => Buffer.from(text));
  for (const frame of frames) counts.keep(frame);
  counts.acknowledge(0n);
  expect(counts.resume()).toEqual(frames);
  counts.acknowledge(2n);
  counts.acknowledge(2n);
  expect(counts.resume()).toEqual(frames.slice(2));
  for (const wrong of [1n, 4n])
    expect(() => counts.acknowledge(wrong)).toThrow(expect.objectContaining({ code: "protocol.invalid" }));
  counts.acknowledge(3n);
  expect(counts.resume()).toEqual([]);
});

it("nothing is sent again of what is forgotten", () => {
  const counts = new FrameCounts();
  counts.keep(Buffer.from("a"));
  counts.forget();
  expect(counts.resume()).toEqual([]);
});
