import { describe, expect, it } from "vitest";
import { BuildTrace } from "../../../../../src/sandbox/docker/calls/build-trace.js";

const field = (number: number, value: string | Buffer) => {
  const bytes = Buffer.from(value);
  const length = bytes.length < 128 ? [bytes.length] : [(bytes.length % 128) + 128, bytes.length >> 7];
  return Buffer.concat([Buffer.from([number * 8 + 2, ...length]), bytes]);
};
const status = (number: number, ...fields: Buffer[]) =>
  field(number, Buffer.concat(fields)).toString("base64");
const time = Buffer.from([8, 200, 209, 172, 216, 6]);
const step = (digest: string, name: string) => status(1, field(1, digest), field(3, name), field(5, time));
const log = (digest: string, text: string) =>
  status(3, field(1, digest), field(2, time), Buffer.from([0x18, 1]), field(4, text));

describe("what BuildKit says of a build", () => {
  it("is the name of each step, once it begins", () => {
    const trace = new BuildTrace();
    expect(trace.linesOf(status(1, field(1, "a"), field(3, "[1/2] RUN x")))).toEqual([]);
    expect(trace.linesOf(step("a", `[1/2] RUN ${"x".repeat(300)}`))).toEqual([
      `[1/2] RUN ${"x".repeat(300)}`,
    ]);
    expect(trace.linesOf(step("a", "[1/2] RUN x"))).toEqual([]);
    expect(trace.linesOf(step("b", "[internal] load build context"))).toEqual([]);
  });

  it("is what commands print, in whole lines, although they run side by side", () => {
    const trace = new BuildTrace();
    expect(trace.linesOf(log("a", "one\ntw"))).toEqual(["one"]);
    expect(trace.linesOf(log("b", "other\n"))).toEqual(["other"]);
    expect(trace.linesOf(log("a", "o\nend"))).toEqual(["two"]);
    expect(trace.rest()).toEqual(["end", ""]);
  });

  it("is cut where a command prints without ending a line, and forgotten once its step has ended", () => {
    const trace = new BuildTrace();
    const piece = "x".repeat(16_000);
    const cut = Array.from({ length: 100 }, () => trace.linesOf(log("a", piece))).flat();
    expect(cut.length).toBe(20);
    expect(cut.join("").length + (trace.rest()[0]?.length ?? 0)).toBe(100 * piece.length);
    expect(trace.linesOf(log("a", "end"))).toEqual([]);
    expect(trace.linesOf(status(1, field(1, "a"), field(5, time), field(6, time)))).toEqual(["", "end"]);
    expect(trace.rest()).toEqual([]);
  });

  it.each([
    ["a length beyond the end", [0x0a, 5, 1]],
    ["a number without an end", [0x08, 0xff, 0xff]],
    ["an endless length", [0x0a, ...Array.from({ length: 200 }, () => 0xff)]],
    ["a field of no kind", [0x0b]],
  ])("is refused with %s", (_, bytes) => {
    expect(() => new BuildTrace().linesOf(Buffer.from(bytes).toString("base64"))).toThrow(SyntaxError);
  });
});
