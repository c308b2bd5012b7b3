import { expect, it } from "vitest";
import {
  KEPT_CHUNKS,
  KEPT_OUTPUT_BYTES,
  OutputLog,
} from "../../../../src/services/exec-server/output-log.js";

it("gives the chunks after a number, at most so many bytes", () => {
  const log = new OutputLog();
  for (const text of ["one", "two", "three"]) log.add("stdout", Buffer.from(text));
  expect(log.after(0, 1000).map(({ seq }) => seq)).toEqual([1, 2, 3]);
  expect(log.after(1, 4)).toEqual([{ seq: 2, stream: "stdout", chunk: "dHdv" }]);
  expect(log.after(1, 0)).toHaveLength(1);
  expect(log.after(3, 1000)).toEqual([]);
  expect(log.nextSeq).toBe(4);
});

it("keeps the latest, and the numbers tell of the gap", () => {
  const log = new OutputLog();
  const piece = Buffer.alloc(KEPT_OUTPUT_BYTES / 4);
  for (let count = 0; count < 10; count++) log.add("pty", piece);
  expect(log.after(0, Number.MAX_SAFE_INTEGER).map(({ seq }) => seq)).toEqual([7, 8, 9, 10]);
});

it("keeps no more chunks than that, however small they are", () => {
  const log = new OutputLog();
  for (let count = 0; count < 3 * KEPT_CHUNKS; count++) log.add("stdout", Buffer.from("x"));
  const kept = log.after(0, Number.MAX_SAFE_INTEGER);
  expect(kept).toHaveLength(KEPT_CHUNKS);
  expect(kept.at(-1)?.seq).toBe(3 * KEPT_CHUNKS);
});
