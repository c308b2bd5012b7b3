import { expect, it } from "vitest";
import { WAIT_RECORD_BYTES, WAITS_MAX } from "../../../../src/sandbox/channel/protocol.js";
import { parseWaits } from "../../../../src/sandbox/process/thread-waits.js";

const invalid = expect.objectContaining({ code: "protocol.invalid" });

function record(thread: number, waitedNs: bigint): Buffer {
  const bytes = Buffer.alloc(WAIT_RECORD_BYTES);
  bytes.writeUInt32LE(thread, 0);
  bytes.writeBigUInt64LE(waitedNs, 4);
  return bytes;
}

it("each thread has its wait, in milliseconds", () => {
  const waits = parseWaits(Buffer.concat([record(7, 2_500_000n), record(8, 0n)]));
  expect([...waits]).toEqual([
    [7, 2.5],
    [8, 0],
  ]);
  expect(parseWaits(Buffer.alloc(0)).size).toBe(0);
});

it("what is no list of waits is refused, and so is a longer one than any sandbox has", () => {
  expect(() => parseWaits(record(1, 1n).subarray(1))).toThrow(invalid);
  const most = Array.from({ length: WAITS_MAX }, (_, thread) => record(thread, 0n));
  expect(parseWaits(Buffer.concat(most)).size).toBe(WAITS_MAX);
  expect(() => parseWaits(Buffer.concat([...most, record(WAITS_MAX, 0n)]))).toThrow(invalid);
});
