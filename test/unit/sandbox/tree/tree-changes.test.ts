import { createHash } from "node:crypto";
import { describe, expect, it, vi } from "vitest";
import {
  leftOutOf,
  type ScanRequest,
  scanChanges,
  type TreeChange,
} from "../../../../src/sandbox/tree/tree-changes.js";
import { changeRecord } from "../../../support/change-records.js";
import { type PlayedAnswer, playedFiles, scanResult } from "../channel/played-files.js";

const roots = { base: "/base", merged: "/merged", upper: "/upper", leftOut: [] };
const [a, b] = ["a", "b"].map((path) => changeRecord({ change: 1, path, now: { type: 1 } })) as [
  Buffer,
  Buffer,
];
const directory = changeRecord({ change: 3, path: "c", before: { type: 2 } });

async function scan(answer: PlayedAnswer, request: Partial<ScanRequest> = {}) {
  const played = await playedFiles(() => answer);
  const changes: TreeChange[] = [];
  const onChanges = (some: readonly TreeChange[]) => void changes.push(...some);
  const result = await scanChanges(played.context, { ...roots, onChanges, ...request });
  const [sent] = played.requests;
  return { result, changes, sent };
}

describe("a scan", () => {
  it("is a request with the directories, and what to leave out", async () => {
    const { sent } = await scan({ result: scanResult() });
    expect(sent).toMatchObject({
      ...{ operation: "changes", path: Buffer.from("/merged"), second: Buffer.from("/base\0/upper\0") },
      ...{ flags: 0, offset: 0n },
    });
    const leftOut = ["x/y", Buffer.from([0xff])];
    const other = await scan(
      { result: scanResult() },
      { leftOut, since: 77n, listSame: true, merged: Buffer.from([0x2f, 0xfe]) },
    );
    expect(other.sent).toMatchObject({
      ...{ path: Buffer.from([0x2f, 0xfe]), flags: 2, offset: 77n },
      second: Buffer.concat([Buffer.from("/base\0/upper\0x/y\0"), Buffer.from([0xff, 0])]),
    });
  });

  it.each(["", "..", "/x", "a//b", Buffer.from("a\0")])("does not leave out %j", async (path) => {
    const scanned = scan({ result: scanResult() }, { leftOut: ["fine", path] });
    await expect(scanned).rejects.toMatchObject({
      code: "file.failed",
      message: expect.stringContaining(`${JSON.stringify(path.toString())} is not a path`),
    });
  });

  it("delivers changes as they come, and says what it has seen", async () => {
    const sha256 = "0123456789abcdef".repeat(4);
    const output = [Buffer.concat([a, b.subarray(0, 10)]), b.subarray(10), directory];
    const calls: string[][] = [];
    const onChanges = (some: readonly TreeChange[]) =>
      void calls.push(some.map(({ path }) => path.toString()));
    const result = scanResult({ startedNs: -3n, count: 3, leftOut: 4n, notEntered: 5n, sha256 });
    const scanned = await scan({ output, result }, { onChanges });
    expect(calls).toEqual([["a"], ["b"], ["c"]]);
    expect(scanned.result).toEqual({ startedNs: -3n, leftOut: { count: 4, sha256 }, notEntered: 5 });
  });

  it("delivers changes one after the other, and ends after everything was taken", async () => {
    const events: string[] = [];
    const onChanges = async ([change]: readonly TreeChange[]) => {
      events.push(`begin ${change?.path}`);
      await new Promise((resolve) => setImmediate(resolve));
      events.push(`end ${change?.path}`);
    };
    await scan({ output: [a, b], result: scanResult({ count: 2 }) }, { onChanges });
    expect(events).toEqual(["begin a", "end a", "begin b", "end b"]);
  });

  it("delivers nothing after what could not be taken", async () => {
    const taken: string[] = [];
    const onChanges = async ([change]: readonly TreeChange[]) => {
      taken.push(String(change?.path));
      throw new Error("full");
    };
    const scanned = scan({ output: [a, b], result: scanResult({ count: 2 }) }, { onChanges });
    await expect(scanned).rejects.toThrow("full");
    expect(taken).toEqual(["a"]);
  });

  it("that is aborted ends when what is being taken has been, and delivers nothing more", async () => {
    const taken: string[] = [];
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const abort = new AbortController();
    const onChanges = async ([change]: readonly TreeChange[]) => {
      taken.push(`begin ${change?.path}`);
      await released;
      taken.push(`end ${change?.path}`);
    };
    const answer = { output: [a, b], waitsForKill: true };
    const scanned = scan(answer, { onChanges, signal: abort.signal }).catch((error: unknown) => {
      taken.push(String(error));
    });
    await vi.waitFor(() => expect(taken).toEqual(["begin a"]));
    abort.abort(new Error("stop"));
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
    expect(taken).toEqual(["begin a"]);
    release();
    await scanned;
    expect(taken).toEqual(["begin a", "end a", "Error: stop"]);
  });

  it.each([
    [
      "at once",
      () => {
        throw new Error("full");
      },
    ],
    [
      "later",
      async () => {
        await Promise.resolve();
        throw new Error("full");
      },
    ],
  ])("fails if its changes cannot be taken, %s", async (_name, onChanges) => {
    const scanned = scan({ output: [a, b], result: scanResult({ count: 2 }) }, { onChanges });
    await expect(scanned).rejects.toThrow("full");
  });

  it.each<[string, PlayedAnswer]>([
    ["too short", { result: scanResult().subarray(1) }],
    ["too long", { result: Buffer.concat([scanResult(), Buffer.alloc(1)]) }],
    ["of another number of changes", { output: [a], result: scanResult({ count: 2 }) }],
    ["of changes that were not sent", { result: scanResult({ count: 1 }) }],
    ["of impossibly many that were left out", { result: scanResult({ leftOut: 1n << 60n }) }],
    ["of impossibly many directories", { result: scanResult({ notEntered: 1n << 60n }) }],
    ["after a change that is cut off", { output: [a, b.subarray(0, -1)], result: scanResult({ count: 1 }) }],
    ["after changes that are out of order", { output: [b, a], result: scanResult({ count: 2 }) }],
  ])("with a result %s is refused", async (_name, answer) => {
    await expect(scan(answer)).rejects.toMatchObject({ code: "protocol.invalid" });
  });

  it("fails with the error of the operation, and with the signal's reason", async () => {
    await expect(scan({ errno: 2 })).rejects.toMatchObject({
      code: "file.not-found",
      message: "cannot changes /merged: no such file or directory",
    });
    const signal = AbortSignal.abort(new Error("stop"));
    await expect(scan({ result: scanResult() }, { signal })).rejects.toThrow("stop");
  });
});

it("what a scan leaves out has a hash over paths, inode numbers and times", () => {
  const parts = (path: string, ino: bigint, ns: bigint) => {
    const bytes = Buffer.alloc(20);
    bytes.writeUInt32LE(Buffer.byteLength(path), 0);
    bytes.writeBigUInt64LE(ino, 4);
    bytes.writeBigInt64LE(ns, 12);
    return [bytes.subarray(0, 4), Buffer.from(path), bytes.subarray(4)];
  };
  const expected = createHash("sha256");
  for (const part of [...parts("ä", 7n, -9n), ...parts("b", 0n, 0n)]) expected.update(part);
  const now = { ino: 7n, changedNs: -9n } as TreeChange["now"];
  expect(
    leftOutOf([
      { path: Buffer.from("ä"), now },
      { path: Buffer.from("b"), now: null },
    ]),
  ).toEqual({ count: 2, sha256: expected.digest("hex") });
  expect(leftOutOf([])).toEqual({ count: 0, sha256: createHash("sha256").digest("hex") });
});
