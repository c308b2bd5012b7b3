import { describe, expect, it } from "vitest";
import { writeContent, writeEach, writeFile } from "../../../../src/sandbox/files/files.js";
import { uint32 } from "../channel/fake-runner.js";
import {
  contentOf,
  extent,
  type PlayedAnswer,
  type PlayedRequest,
  parseRequest,
  playedFiles,
} from "../channel/played-files.js";
import { contentIn } from "../snapshots/content-text.js";

const INLINE = 60 * 1024;
const done = (count: number): PlayedAnswer => ({ result: uint32(count) });

async function answers(...given: PlayedAnswer[]) {
  return await playedFiles(() => given.shift() ?? {});
}

const described = ({ operation, path, flags, mode, second, input }: PlayedRequest) => {
  const size = second.length + input.length;
  return `${operation} ${path} flags ${flags} mode ${mode.toString(8)}, ${size} bytes${input.length > 0 ? " of input" : ""}`;
};

/** The writes in a sequence. */
function writesIn({ second }: PlayedRequest): PlayedRequest[] {
  const found: PlayedRequest[] = [];
  for (let at = 0; at < second.length; ) {
    const end = at + 4 + second.readUInt32LE(at);
    found.push(parseRequest(second.subarray(at + 4, end)));
    at = end;
  }
  return found;
}

describe("one file", () => {
  it.each([
    ["ü", {}, "write /p flags 2 mode 644, 2 bytes"],
    ["", {}, "write /p flags 2 mode 644, 0 bytes"],
    [Buffer.alloc(INLINE), { mode: 0o600 }, `write /p flags 2 mode 600, ${INLINE} bytes`],
    [
      Buffer.alloc(INLINE + 1),
      { refuseSymlinks: true },
      `write /p flags 128 mode 644, ${INLINE + 1} bytes of input`,
    ],
  ])("%# is written in one request", async (data, options, expected) => {
    const played = await answers();
    await writeFile(played.context, { path: "/p", data, ...options });
    expect(played.requests.map(described)).toEqual([expected]);
  });

  it("may come in pieces, and never goes through a link", async () => {
    const played = await answers();
    const content = contentIn("one ", "two");
    await writeContent(played.context, { path: "/p", content, mode: 0o600 });
    expect(played.requests.map(described)).toEqual(["write /p flags 132 mode 600, 43 bytes of input"]);
    expect(contentOf(played.requests[0]?.input ?? Buffer.alloc(0)).toString()).toBe("one two");
  });

  it("may have holes, and comes in extents of 64 KiB", async () => {
    const played = await answers();
    const content = (async function* () {
      yield { offset: 7, data: Buffer.alloc(64 * 1024 + 1, "x") };
      yield { offset: 2 ** 40, data: Buffer.alloc(0) };
    })();
    await writeContent(played.context, { path: "/p", content, mode: 0o600 });
    const extents = [extent(7, "x".repeat(64 * 1024)), extent(7 + 64 * 1024, "x"), extent(2 ** 40)];
    expect(played.requests[0]?.input).toEqual(Buffer.concat(extents));
  });

  it("of which a piece cannot be read is given up", async () => {
    const played = await answers();
    const content = (async function* () {
      yield { offset: 0, data: Buffer.from("one") };
      throw new Error("no more");
    })();
    await expect(writeContent(played.context, { path: "/p", content, mode: 0o600 })).rejects.toThrow(
      "no more",
    );
    await expect.poll(() => played.kills).toBe(1);
    expect(played.requests).toEqual([]);
  });

  it("is not written once the signal is aborted", async () => {
    const played = await answers();
    const signal = AbortSignal.abort(new Error("before"));
    await expect(writeFile(played.context, { path: "/p", data: "x", signal })).rejects.toThrow("before");
    const content = contentIn("x");
    await expect(writeContent(played.context, { path: "/p", content, mode: 0o600, signal })).rejects.toThrow(
      "before",
    );
    expect(played.requests).toEqual([]);
  });
});

describe("several files", () => {
  it("that are short are one request, in their order", async () => {
    const played = await answers(done(2));
    const files = [
      { path: "/a", data: "1", mode: 0o755 },
      { path: "/b", data: "22" },
    ];
    expect(await writeEach(played.context, files, { refuseSymlinks: true })).toEqual({
      written: 2,
      failure: null,
    });
    expect(played.requests.map(({ operation, path }) => `${operation} ${path}`)).toEqual(["sequence /"]);
    expect(played.requests.flatMap(writesIn).map(described)).toEqual([
      "write /a flags 130 mode 755, 1 bytes",
      "write /b flags 130 mode 644, 2 bytes",
    ]);
  });

  it("may be none", async () => {
    const played = await answers();
    expect(await writeEach(played.context, [], {})).toEqual({ written: 0, failure: null });
    expect(played.requests).toEqual([]);
  });

  it("or only one, without a sequence", async () => {
    const played = await answers({}, { errno: 13 });
    const files = [{ path: "/a", data: "1" }];
    expect(await writeEach(played.context, files, {})).toEqual({ written: 1, failure: null });
    expect(await writeEach(played.context, files, {})).toMatchObject({
      written: 0,
      failure: { code: "file.not-permitted", message: expect.stringContaining("/a") },
    });
    expect(played.requests.map(({ operation }) => operation)).toEqual(["write", "write"]);
  });

  it("of which one is large are written before it, alone, and after it", async () => {
    const played = await answers(done(2), {}, done(2));
    const large = { path: "/large", data: Buffer.alloc(INLINE + 1) };
    const short = ["/1", "/2", "/3", "/4"].map((path) => ({ path, data: "x" }));
    const files = [...short.slice(0, 2), large, ...short.slice(2)];
    expect(await writeEach(played.context, files, {})).toEqual({ written: 5, failure: null });
    expect(played.requests.map(({ operation }) => operation)).toEqual(["sequence", "write", "sequence"]);
    expect(played.requests.map((one) => writesIn(one).map(({ path }) => path.toString()))).toEqual([
      ["/1", "/2"],
      expect.anything(),
      ["/3", "/4"],
    ]);
  });

  it("are several requests of at most 1 MiB, with four bytes for each character of a path", async () => {
    const path = "/12345678";
    const file = (sizeBytes: number) => ({ path, data: Buffer.alloc(sizeBytes - 4 * path.length) });
    /** How many writes the requests have for files of these sizes, each with its path. */
    const counts = async (sizes: readonly number[]) => {
      const played = await playedFiles((request) =>
        request.operation === "write" ? {} : done(writesIn(request).length),
      );
      expect(await writeEach(played.context, sizes.map(file), {})).toEqual({
        written: sizes.length,
        failure: null,
      });
      return played.requests.map((one) => (one.operation === "write" ? 1 : writesIn(one).length));
    };
    const half = Array<number>(16).fill(2 ** 15);
    const allButOne = [...half, ...half.slice(1)];
    expect(await counts([...half, ...half])).toEqual([32]);
    expect(await counts([...allButOne, 2 ** 15 + 1])).toEqual([31, 1]);
    expect(await counts([...allButOne, 2 ** 15 + 1, ...half, ...half.slice(1)])).toEqual([31, 31, 1]);
  });

  it("stop at the first that fails, and say which it was", async () => {
    const played = await answers({ errno: 28, result: uint32(1) });
    const files = ["/a", "/b", "/c"].map((path) => ({ path, data: "x" }));
    expect(await writeEach(played.context, files, {})).toMatchObject({
      written: 1,
      failure: { code: "file.failed", errno: "ENOSPC", message: "cannot write /b: ENOSPC" },
    });
  });

  it("count those of earlier requests, too", async () => {
    const played = await answers(done(2), { errno: 28 });
    const files = [
      ...["/a", "/b"].map((path) => ({ path, data: "x" })),
      { path: "/large", data: Buffer.alloc(INLINE + 1) },
      { path: "/never", data: "x" },
    ];
    expect(await writeEach(played.context, files, {})).toMatchObject({
      written: 2,
      failure: { message: "cannot write /large: ENOSPC" },
    });
    expect(played.requests).toHaveLength(2);
  });

  it("are not begun if one has no absolute path", async () => {
    const played = await answers();
    const files = ["/a", "b"].map((path) => ({ path, data: "x" }));
    await expect(writeEach(played.context, files, {})).rejects.toMatchObject({ code: "file.not-found" });
    expect(played.requests).toEqual([]);
  });

  it.each<[string, PlayedAnswer]>([
    ["more are written than asked for", done(3)],
    ["fewer are written, and nothing failed", done(1)],
    ["all are written, and one failed", { errno: 5, result: uint32(2) }],
    ["nothing is said", {}],
    ["all are written, but the request was lost", { kind: 3, result: uint32(2) }],
  ])("are not believed where %s", async (_name, answer) => {
    const played = await answers(answer);
    const files = ["/a", "/b"].map((path) => ({ path, data: "x" }));
    await expect(writeEach(played.context, files, {})).rejects.toMatchObject({ code: "protocol.invalid" });
  });

  it("without an honest count have none written", async () => {
    const played = await answers({ errno: 5, result: Buffer.alloc(5, 1) });
    const files = ["/a", "/b"].map((path) => ({ path, data: "x" }));
    expect(await writeEach(played.context, files, {})).toMatchObject({
      written: 0,
      failure: { message: "cannot write /a: EIO" },
    });
  });

  it("stop with the signal's reason", async () => {
    const files = ["/a", "/b"].map((path) => ({ path, data: "x" }));
    const before = await answers();
    const reason = new Error("stop");
    expect(await writeEach(before.context, files, { signal: AbortSignal.abort(reason) })).toEqual({
      written: 0,
      failure: reason,
    });
    expect(before.requests).toEqual([]);
    const abort = new AbortController();
    const meanwhile = await playedFiles(() => {
      abort.abort(reason);
      return { errno: 4, result: uint32(1) };
    });
    expect(await writeEach(meanwhile.context, files, { signal: abort.signal })).toEqual({
      written: 1,
      failure: reason,
    });
  });
});
