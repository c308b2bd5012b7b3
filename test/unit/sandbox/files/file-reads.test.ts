import { describe, expect, it } from "vitest";
import { readFile, readPastHole } from "../../../../src/sandbox/files/file-reads.js";
import { type PlayedAnswer, playedFiles, readResult } from "../channel/played-files.js";

const INLINE = 60 * 1024;
const MAX = 256 * 1024 * 1024;
const bytes = (length: number) => Buffer.alloc(length, "x");

/** Answers one request after the other with these. */
async function answers(...given: PlayedAnswer[]) {
  return await playedFiles(() => given.shift() ?? { errno: 5 });
}

const asked = ({ requests }: Awaited<ReturnType<typeof answers>>) =>
  requests.map(({ operation, flags, offset, length }) => ({ operation, flags, offset, length }));

describe("a whole file", () => {
  it("that is short comes with the answer", async () => {
    const played = await answers({ result: readResult(0, Buffer.from("short")) });
    expect((await readFile(played.context, "/p", {})).toString()).toBe("short");
    expect(asked(played)).toEqual([{ operation: "read", flags: 2, offset: 0n, length: BigInt(INLINE) }]);
    expect(played.requests[0]?.path.toString()).toBe("/p");
  });

  it("that is empty is no bytes", async () => {
    const played = await answers({ result: readResult() });
    expect(await readFile(played.context, "/p", {})).toHaveLength(0);
  });

  it("one byte short of what an answer holds is not read again", async () => {
    const played = await answers({ result: readResult(0, bytes(INLINE - 1)) });
    expect(await readFile(played.context, "/p", {})).toHaveLength(INLINE - 1);
    expect(played.requests).toHaveLength(1);
  });

  it("that fills an answer is read again from its start, as a stream", async () => {
    const played = await answers(
      { result: readResult(3, bytes(INLINE)) },
      { result: readResult(3), output: [Buffer.from("now "), Buffer.from("another")] },
    );
    const options = { offsetBytes: 3, refuseSymlinks: true };
    expect((await readFile(played.context, "/p", options)).toString()).toBe("now another");
    expect(asked(played)).toEqual([
      { operation: "read", flags: 128 | 2, offset: 3n, length: BigInt(INLINE) },
      { operation: "read", flags: 128 | 1, offset: 3n, length: BigInt(MAX + 1) },
    ]);
  });

  it("may have as many bytes as allowed, and not one more", async () => {
    const whole = { result: readResult(0, Buffer.from("12345")) };
    expect(await readFile((await answers(whole)).context, "/p", { maxBytes: 5 })).toHaveLength(5);
    const longer = readFile((await answers(whole)).context, "/p", { maxBytes: 4 });
    await expect(longer).rejects.toMatchObject({
      code: "file.too-large",
      message: "cannot read /p: the file is too large",
      hint: expect.stringContaining("maxBytes"),
    });
  });

  it("that the runner finds too large is refused", async () => {
    const played = await answers({ result: readResult(0, bytes(INLINE)) }, { errno: 27 });
    await expect(readFile(played.context, "/p", { maxBytes: INLINE })).rejects.toMatchObject({
      code: "file.too-large",
    });
    expect(played.requests[1]?.length).toBe(BigInt(INLINE + 1));
  });
});

describe("a part of a file", () => {
  it("of no bytes is only looked at", async () => {
    const played = await answers({ result: Buffer.alloc(52) }, { errno: 2 });
    expect(await readFile(played.context, "/p", { lengthBytes: 0 })).toHaveLength(0);
    expect(asked(played)).toEqual([{ operation: "stat", flags: 0, offset: 0n, length: 0n }]);
    await expect(readFile(played.context, "/p", { lengthBytes: 0 })).rejects.toMatchObject({
      code: "file.not-found",
    });
  });

  it.each([
    [INLINE, 2],
    [INLINE + 1, 0],
  ])("of %d bytes has the flags %d", async (lengthBytes, flags) => {
    const inline = { result: readResult(7, Buffer.from("part")) };
    const stream = { result: readResult(7), output: [Buffer.from("part")] };
    const played = await answers(flags === 2 ? inline : stream);
    const part = await readFile(played.context, "/p", { offsetBytes: 7, lengthBytes });
    expect(part.toString()).toBe("part");
    expect(asked(played)).toEqual([{ operation: "read", flags, offset: 7n, length: BigInt(lengthBytes) }]);
  });

  it("begins after a hole where it may", async () => {
    const played = await answers({ result: readResult(4096, Buffer.from("data")) });
    const part = await readPastHole(played.context, "/p", { offsetBytes: 96, lengthBytes: 10 });
    expect(part).toEqual({ holeBytes: 4000, data: Buffer.from("data") });
    expect(played.requests[0]?.flags).toBe(4 | 2);
  });

  it("has no hole before it where it begins at once", async () => {
    const played = await answers({ result: readResult(96) });
    expect(await readPastHole(played.context, "/p", { offsetBytes: 96, lengthBytes: 10 })).toEqual({
      holeBytes: 0,
      data: Buffer.alloc(0),
    });
    const none = await answers({ result: Buffer.alloc(52) });
    expect(await readPastHole(none.context, "/p", { offsetBytes: 96, lengthBytes: 0 })).toEqual({
      holeBytes: 0,
      data: Buffer.alloc(0),
    });
  });
});

const invalid = { code: "protocol.invalid" };

it.each<[string, { lengthBytes: number; offsetBytes?: number }, PlayedAnswer]>([
  ["has more bytes than asked for", { lengthBytes: 3 }, { result: readResult(0, bytes(4)) }],
  [
    "streams more bytes than asked for",
    { lengthBytes: INLINE + 1 },
    { result: readResult(), output: [bytes(INLINE), bytes(2)] },
  ],
  ["begins earlier", { lengthBytes: 3, offsetBytes: 5 }, { result: readResult(4) }],
  ["begins later, without a hole", { lengthBytes: 3, offsetBytes: 5 }, { result: readResult(6) }],
  ["does not say where it begins", { lengthBytes: 3 }, { result: Buffer.alloc(15) }],
  ["begins beyond all files", { lengthBytes: 3 }, { result: readResult(1n << 60n) }],
])("an answer that %s is refused", async (_name, options, answer) => {
  const played = await answers(answer);
  await expect(readFile(played.context, "/p", options)).rejects.toMatchObject(invalid);
});

it.each<[string, bigint]>([
  ["before the offset", 95n],
  ["beyond all files", 1n << 53n],
])("a hole that ends %s is refused", async (_name, start) => {
  const played = await answers({ result: readResult(start) });
  const read = readPastHole(played.context, "/p", { offsetBytes: 96, lengthBytes: 10 });
  await expect(read).rejects.toMatchObject(invalid);
});

describe("a signal", () => {
  it("that is aborted already sends nothing", async () => {
    const played = await answers();
    const signal = AbortSignal.abort(new Error("before"));
    await expect(readFile(played.context, "/p", { signal })).rejects.toThrow("before");
    await expect(readFile(played.context, "/p", { signal, lengthBytes: 0 })).rejects.toThrow("before");
    expect(played.requests).toEqual([]);
  });

  it("ends a read that is under way", async () => {
    const abort = new AbortController();
    const played = await playedFiles(() => {
      setImmediate(() => abort.abort(new Error("meanwhile")));
      return { waitsForKill: true };
    });
    const { signal } = abort;
    await expect(readFile(played.context, "/p", { signal, lengthBytes: 9 })).rejects.toThrow("meanwhile");
    expect(played.kills).toBe(1);
  });
});
