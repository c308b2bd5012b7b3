import { describe, expect, it } from "vitest";
import { type CopyRecord, copyTree } from "../../../../src/sandbox/tree/tree-copy.js";
import {
  listEntry,
  type PlayedAnswer,
  type PlayedRequest,
  playedFiles,
  statResult,
} from "../channel/played-files.js";

const put = (path: string, maxBytes?: number): CopyRecord => ({
  ...{ action: "put", path, content: 0, mode: 0o644, expects: "any" },
  ...(maxBytes !== undefined && { maxBytes }),
});
const mkdir = (path: string): CopyRecord => ({ action: "mkdir", path, mode: 0o755, expects: "any" });
const link = (path: string): CopyRecord => ({
  ...{ action: "symlink", path, linkTarget: Buffer.from("to"), expects: "any" },
});

interface State {
  outcome?: number;
  ino?: bigint;
  size?: bigint;
  changedNs?: bigint;
}

function stateOf({ outcome = 1, ino = 0n, size = 0n, changedNs = 0n }: State): Buffer {
  const state = Buffer.alloc(32);
  state.writeUInt8(outcome, 0);
  state.writeBigUInt64LE(ino, 8);
  state.writeBigUInt64LE(size, 16);
  state.writeBigInt64LE(changedNs, 24);
  return state;
}

function resultOf({ bytes = 0n, failed = 0xffff_ffff, zero = 0 } = {}): Buffer {
  const result = Buffer.alloc(16);
  result.writeBigUInt64LE(bytes, 0);
  result.writeUInt32LE(failed, 8);
  result.writeUInt32LE(zero, 12);
  return result;
}

/** The records in a request: their actions, paths, and the most bytes. */
function recordsIn({ second }: PlayedRequest) {
  const found: { action: number; path: string; maxBytes: bigint }[] = [];
  for (let at = second.indexOf(0) + 1; at < second.length; ) {
    const pathEnd = at + 72 + second.readUInt32LE(at + 20);
    const path = second.toString("utf8", at + 72, pathEnd);
    found.push({ action: second.readUInt8(at), path, maxBytes: second.readBigUInt64LE(at + 48) });
    at = pathEnd + second.readUInt32LE(at + 24);
  }
  return found;
}

const request = { target: "/merged", from: "/from", maxBytes: 1000 };
const records = [put("c", 5), mkdir("a"), link("b")];
const done = (count: number): Buffer[] => Array.from({ length: count }, () => stateOf({}));

async function copy(answer: PlayedAnswer, given: readonly CopyRecord[] = records) {
  const played = await playedFiles(() => answer);
  return await copyTree(played.context, { ...request, records: given });
}

describe("a copy", () => {
  it("is a request with the other tree, and what to make of it", async () => {
    const output = [
      Buffer.concat([stateOf({}), stateOf({ ino: 2n, size: 3n, changedNs: 4n })]),
      stateOf({ ino: 5n, size: 6n, changedNs: -7n }),
    ];
    const played = await playedFiles(() => ({ output, result: resultOf({ bytes: 6n }) }));
    expect(await copyTree(played.context, { ...request, records })).toEqual([
      { path: Buffer.from("a"), isLeftOut: false, stamp: null },
      {
        path: Buffer.from("b"),
        isLeftOut: false,
        stamp: { type: "symlink", ino: 2n, sizeBytes: 3, changedNs: 4n },
      },
      {
        path: Buffer.from("c"),
        isLeftOut: false,
        stamp: { type: "file", ino: 5n, sizeBytes: 6, changedNs: -7n },
      },
    ]);
    const [sent] = played.requests;
    expect(played.requests).toHaveLength(1);
    expect(sent).toMatchObject({ operation: "copy", path: Buffer.from("/merged"), length: 1000n });
    expect(sent?.second.subarray(0, 6).toString()).toBe("/from\0");
    expect(sent && recordsIn(sent)).toEqual([
      { action: 2, path: "a", maxBytes: 0n },
      { action: 3, path: "b", maxBytes: 0n },
      { action: 1, path: "c", maxBytes: 5n },
    ]);
  });

  it("of nothing asks for nothing", async () => {
    expect(await copy({ errno: 5 }, [])).toEqual([]);
  });

  it("leaves out a file that the other tree no longer has", async () => {
    const output = [stateOf({}), stateOf({}), stateOf({ outcome: 2, ino: 9n })];
    expect(await copy({ output, result: resultOf() })).toMatchObject([
      { isLeftOut: false },
      { isLeftOut: false },
      { path: Buffer.from("c"), isLeftOut: true, stamp: null },
    ]);
  });

  it("that fails names the path, if the runner does", async () => {
    await expect(copy({ errno: 28, result: resultOf({ failed: 1 }) })).rejects.toMatchObject({
      message: "cannot copy /merged/b: ENOSPC",
    });
    await expect(copy({ errno: 27, result: resultOf() })).rejects.toMatchObject({
      code: "file.too-large",
      message: "cannot copy /merged: the file is too large",
    });
    await expect(copy({ kind: 3 })).rejects.toMatchObject({ code: "file.failed", errno: "EIO" });
  });

  it.each<[string, PlayedAnswer]>([
    ["with a longer result", { output: done(3), result: Buffer.alloc(17) }],
    ["with more bytes than allowed", { output: done(3), result: resultOf({ bytes: 1001n }) }],
    ["that failed at no record", { output: done(3), result: resultOf({ failed: 3 }) }],
    ["with something where nothing is", { output: done(3), result: resultOf({ zero: 1 }) }],
    ["with too few states", { output: done(2), result: resultOf() }],
    ["with too many states", { output: done(4), result: resultOf() }],
    ["with a state that is cut off", { output: [Buffer.concat(done(3)).subarray(1)], result: resultOf() }],
    ["with an unknown outcome", { output: [...done(2), stateOf({ outcome: 3 })], result: resultOf() }],
    ["without an outcome", { output: [stateOf({ outcome: 0 }), ...done(2)], result: resultOf() }],
    ["that leaves out a directory", { output: [stateOf({ outcome: 2 }), ...done(2)], result: resultOf() }],
    ["with an impossible size", { output: [...done(2), stateOf({ size: 1n << 60n })], result: resultOf() }],
  ])("with an answer %s is refused", async (_name, answer) => {
    await expect(copy(answer)).rejects.toMatchObject({ code: "protocol.invalid" });
  });

  it("may take all bytes that are allowed", async () => {
    expect(await copy({ output: done(3), result: resultOf({ bytes: 1000n }) })).toHaveLength(3);
  });

  it("stops with its signal, before and after a request", async () => {
    const before = await playedFiles(() => ({}));
    const signal = AbortSignal.abort(new Error("stop"));
    await expect(copyTree(before.context, { ...request, records, signal })).rejects.toThrow("stop");
    expect(before.requests).toEqual([]);
    const abort = new AbortController();
    const during = await playedFiles(() => {
      abort.abort(new Error("stop"));
      return { output: done(3), result: resultOf() };
    });
    await expect(copyTree(during.context, { ...request, records, signal: abort.signal })).rejects.toThrow(
      "stop",
    );
  });
});

describe("a copy of many paths", () => {
  /** Each of these takes 72 bytes, and its path. */
  const long = (at: number) =>
    `${String(at).padStart(4, "0")}/${`${"x".repeat(199)}/`.repeat(19)}`.padEnd(4024, "y");
  const many = Array.from({ length: 257 }, (_, at) => (at % 2 === 0 ? mkdir(long(at)) : put(long(at), 1)));

  async function copyMany(given: readonly CopyRecord[]) {
    const played = await playedFiles((sent) => ({
      output: done(recordsIn(sent).length),
      result: resultOf({ bytes: 100n }),
    }));
    const copied = await copyTree(played.context, { ...request, records: given });
    return { copied, requests: played.requests };
  }

  it("is one request up to 1 MiB", async () => {
    const { copied, requests } = await copyMany(many.slice(0, 256));
    expect(requests).toHaveLength(1);
    expect(requests[0]?.second).toHaveLength(2 ** 20 + 6);
    expect(copied).toHaveLength(256);
  });

  it("is several beyond that, and then gives directories their times again", async () => {
    const { copied, requests } = await copyMany(many);
    expect(copied.map(({ path }) => path.toString())).toEqual(many.map(({ path }) => path.toString()));
    expect(requests.map((one) => recordsIn(one).length)).toEqual([256, 1, 128, 1]);
    expect(requests.map(({ length }) => length)).toEqual([1000n, 900n, 800n, 700n]);
    expect(
      new Set(
        requests
          .slice(2)
          .flatMap(recordsIn)
          .map(({ action }) => action),
      ),
    ).toEqual(new Set([2]));
  });
});

describe("what is done of a copy", () => {
  const MIB = 1024 ** 2;

  it("is told as its states arrive, even where one of them is in two pieces", async () => {
    const states = Buffer.concat(done(3));
    const output = [states.subarray(0, 40), states.subarray(40)];
    const told: string[][] = [];
    const onDone = (paths: readonly Buffer[]) => void told.push(paths.map(String));
    const played = await playedFiles(() => ({ output, result: resultOf({}) }));
    await copyTree(played.context, { ...request, records, onDone });
    expect(told).toEqual([["a"], ["b", "c"]]);
  });

  it("is told more often of large files, since each request ends sooner", async () => {
    const told: string[][] = [];
    const onDone = (paths: readonly Buffer[]) => void told.push(paths.map(String));
    const played = await playedFiles((asked) => ({
      output: done(recordsIn(asked).length),
      result: resultOf({}),
    }));
    const large = ["a", "b", "c", "d"].map((path) => put(path, 100 * MIB));
    await copyTree(played.context, { ...request, maxBytes: 1000 * MIB, records: large, onDone });
    expect(told.map((paths) => [...new Set(paths)]).filter((paths) => paths.length > 0)).toEqual([
      ["a"],
      ["b"],
      ["c"],
      ["d"],
    ]);
    expect(played.requests).toHaveLength(2);
  });

  it("is told of a large file while it is copied, by how far its copy is in the stage", async () => {
    const told: [string, number][] = [];
    let end: () => void = () => undefined;
    const until = new Promise<void>((resolve) => {
      end = resolve;
    });
    const sizes = [50n, 100n, 900n].map((mib) => mib * BigInt(MIB));
    const played = await playedFiles(({ operation, path, ...asked }) => {
      if (operation === "list") {
        const names = ["file", ".brig-stage-left", ".brig-stage-new"];
        return { result: Buffer.concat(names.map((name) => listEntry(2, name))) };
      }
      if (operation === "stat") {
        if (String(path) !== "/merged/.brig-stage-new/new") return { errno: 2 };
        return { result: statResult({ type: 1, size: sizes.shift() ?? 0n }) };
      }
      const records = recordsIn({ operation, path, ...asked });
      const output = done(records.length);
      return { output, result: resultOf({}), until: records[0]?.path === "large" ? until : undefined };
    });
    await copyTree(played.context, {
      ...{ ...request, maxBytes: 1000 * MIB },
      records: [put("before", MIB), put("large", 200 * MIB), put("zoo", MIB)],
      onReached(path, share) {
        told.push([String(path), share]);
        if (told.length === 3) end();
      },
    });
    expect(told.slice(0, 3)).toEqual([
      ["large", 0.25],
      ["large", 0.5],
      ["large", 1],
    ]);
    const copies = played.requests.filter(({ operation }) => operation === "copy");
    expect(copies.map((one) => recordsIn(one).map(({ path }) => path))).toEqual([
      ["before"],
      ["large"],
      ["zoo"],
    ]);
  });
});
