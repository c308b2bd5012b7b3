import { describe, expect, it } from "vitest";
import {
  commitTree,
  encodeRecord,
  isStage,
  makeStage,
  newStage,
  recoverTree,
  sortRecords,
  stagedPath,
  type TreeRecord,
} from "../../../../src/sandbox/tree/tree-commit.js";
import { commitResult, type PlayedAnswer, playedFiles, statResult } from "../channel/played-files.js";

const stage = { name: ".brig-stage-00ff", key: Buffer.alloc(32, 7) };
const second = Buffer.concat([stage.key, Buffer.from(stage.name)]);
const remove = (path: string): TreeRecord => ({ action: "remove", path, expects: "any" });
const records = [remove("b"), remove("a"), remove("c")];
const place = { target: "/base", stage };

async function commit(answer: PlayedAnswer, given: readonly TreeRecord[] = records) {
  const played = await playedFiles(() => answer);
  const outcome = commitTree(played.context, { ...place, records: given }).then(
    (value) => ({ value, error: null }),
    (error: unknown) => ({ value: null, error }),
  );
  return { ...(await outcome), requests: played.requests };
}

describe("a commit", () => {
  it("is a request with its stage, and records in their order", async () => {
    const { value, requests } = await commit({ result: commitResult({ done: 3 }) });
    expect(value).toEqual({ committed: true });
    const input = Buffer.concat(sortRecords(records).map(encodeRecord));
    expect(requests).toMatchObject([
      {
        operation: "commit",
        path: Buffer.from("/base"),
        second,
        input,
        length: BigInt(input.length),
        flags: 0,
      },
    ]);
  });

  it("is followed by looking which contents have left the stage, or have changed places with what they replace", async () => {
    const old = { type: "file", ino: 99n, sizeBytes: 1, modifiedNs: 1n, changedNs: 1n } as const;
    const put = (content: number): TreeRecord => ({
      ...{ action: "put", path: `f${content}`, content, mode: 0o644 },
      expects: content % 2 === 0 ? "absent" : old,
    });
    const puts = Array.from({ length: 8 }, (_, content) => put(content));
    const steps = [0, 3, 6, 8];
    let done = 0;
    const told: number[] = [];
    let end: () => void = () => undefined;
    const until = new Promise<void>((resolve) => {
      end = resolve;
    });
    const played = await playedFiles(({ operation, path }) => {
      if (operation === "commit") return { result: commitResult({ done: 10 }), until };
      const content = Number(String(path).slice("/base/.brig-stage-00ff/".length));
      if (content >= done) return { result: statResult({ type: 1, ino: BigInt(content) }) };
      return content % 2 === 0 ? { errno: 2 } : { result: statResult({ type: 1, ino: 99n }) };
    });
    await commitTree(played.context, {
      ...{ ...place, records: [remove("a"), ...puts, remove("z")] },
      onPlaced(contents) {
        told.push(contents);
        done = steps[told.length] ?? 8;
        if (told.length === steps.length) end();
      },
    });
    expect(told.slice(0, steps.length)).toEqual(steps);
  });

  it("goes on where nobody can see how far it is", async () => {
    let end: () => void = () => undefined;
    const until = new Promise<void>((resolve) => {
      end = resolve;
    });
    const played = await playedFiles(({ operation }) => {
      if (operation === "commit") return { result: commitResult({ done: 1 }), until };
      end();
      return { errno: 13 };
    });
    const told: number[] = [];
    const onPlaced = (contents: number) => void told.push(contents);
    const put: TreeRecord = { action: "put", path: "f", content: 0, mode: 0o644, expects: "absent" };
    expect(await commitTree(played.context, { ...place, records: [put], onPlaced })).toEqual({
      committed: true,
    });
    expect(told).toEqual([]);
  });

  it("of nothing only removes its stage", async () => {
    const { value, requests } = await commit({ result: commitResult() }, []);
    expect(value).toEqual({ committed: true });
    expect(requests.map(({ operation }) => operation)).toEqual(["recover"]);
    expect((await commit({ errno: 13 }, [])).error).toMatchObject({ code: "file.not-permitted" });
  });

  it("may leave its stage", async () => {
    expect((await commit({ result: commitResult({ flags: 1, done: 3 }) })).value).toEqual({
      committed: true,
    });
  });

  it("names each path that is not as expected, and why", async () => {
    const conflicts = [
      [0, 1],
      [1, 6],
      [2, 7],
    ] as const;
    const { value } = await commit({ errno: 16, result: commitResult({ conflicts }) });
    expect(value).toEqual({
      committed: false,
      conflicts: [
        { path: Buffer.from("a"), reason: "exists" },
        { path: Buffer.from("b"), reason: "mount" },
        { path: Buffer.from("c"), reason: "reserved" },
      ],
      omitted: 0,
    });
  });

  it.each([
    [2, "missing"],
    [3, "type"],
    [4, "changed"],
    [5, "parent"],
  ])("knows the reason %d", async (number, reason) => {
    const { value } = await commit({ result: commitResult({ conflicts: [[1, number]] }) });
    expect(value).toMatchObject({ conflicts: [{ path: Buffer.from("b"), reason }] });
  });

  it("counts the conflicts that are too many to be listed", async () => {
    const many = Array.from({ length: 7002 }, (_, at) => remove(`f${at}`));
    const conflicts = Array.from({ length: 7000 }, (_, at) => [at, 1] as const);
    const { value } = await commit({ result: commitResult({ count: 7002, conflicts }) }, many);
    expect(value).toMatchObject({ committed: false, omitted: 2 });
    const fewer = await commit(
      { result: commitResult({ count: 7002, conflicts: conflicts.slice(1) }) },
      many,
    );
    expect(fewer.error).toMatchObject({ code: "protocol.invalid" });
  });

  it("that fails names the path at which it did", async () => {
    const failed = await commit({ errno: 28, result: commitResult({ failed: 1 }) });
    expect(failed.error).toMatchObject({ code: "file.failed", message: "cannot commit /base/b: ENOSPC" });
    const whole = await commit({ errno: 30 });
    expect(whole.error).toMatchObject({
      code: "file.read-only",
      message: "cannot commit /base: read-only file system",
    });
    expect((await commit({ kind: 3 })).error).toMatchObject({ code: "file.failed", errno: "EIO" });
  });

  it.each([
    [11, "EAGAIN", "another program holds the lock", "wait until the other commit is done"],
    [9, "EBADF", "its content is not in the stage", "fill another stage"],
    [74, "EBADMSG", "the notes in the stage are not by the commit", "remove it by hand"],
  ])("that fails with %d says what to do", async (errno, name, text, hint) => {
    const { error } = await commit({ errno, result: commitResult({ failed: 2 }) });
    expect(error).toMatchObject({
      ...{ code: "file.failed", errno: name },
      message: expect.stringMatching(new RegExp(`^cannot commit /base/c: ${text}`)),
      hint: expect.stringContaining(hint),
      cause: { code: "file.failed", errno: name },
    });
  });

  it("that could not be undone says where the old files are", async () => {
    const torn = {
      code: "file.failed",
      message: expect.stringContaining("/base changed while a commit was undone"),
      hint: "what was there before is in /base/.brig-stage-00ff",
    };
    for (const flags of [2, 3])
      expect((await commit({ errno: 5, result: commitResult({ flags, failed: 0 }) })).error).toMatchObject(
        torn,
      );
  });

  it.each<[string, Buffer]>([
    ["shorter than a result", commitResult().subarray(1)],
    ["with half a conflict", Buffer.concat([commitResult({ count: 1 }), Buffer.alloc(4)])],
    ["with fewer conflicts than it says", commitResult({ count: 1 })],
    ["with more conflicts than it says", commitResult({ count: 0, conflicts: [[0, 1]] })],
    [
      "with more conflicts than records",
      commitResult({
        conflicts: [
          [0, 1],
          [1, 1],
          [2, 1],
          [3, 1],
        ],
      }),
    ],
    ["with an unknown flag", commitResult({ flags: 4 })],
    ["that failed at no record", commitResult({ failed: 3 })],
    ["with a conflict of no record", commitResult({ conflicts: [[3, 1]] })],
    [
      "with a conflict twice",
      commitResult({
        conflicts: [
          [1, 1],
          [1, 1],
        ],
      }),
    ],
    [
      "with conflicts out of order",
      commitResult({
        conflicts: [
          [1, 1],
          [0, 1],
        ],
      }),
    ],
    ["with no reason", commitResult({ conflicts: [[0, 0]] })],
    ["with an unknown reason", commitResult({ conflicts: [[0, 8]] })],
  ])("with an answer %s is refused", async (_name, result) => {
    expect((await commit({ result })).error).toMatchObject({ code: "protocol.invalid" });
  });

  it("is not begun with a path twice, nor once the signal is aborted", async () => {
    const { error, requests } = await commit({}, [remove("a"), remove("a")]);
    expect(error).toMatchObject({ code: "file.failed" });
    const played = await playedFiles(() => ({}));
    const signal = AbortSignal.abort(new Error("stop"));
    await expect(commitTree(played.context, { ...place, records, signal })).rejects.toThrow("stop");
    await expect(commitTree(played.context, { ...place, records: [], signal })).rejects.toThrow("stop");
    expect([...requests, ...played.requests]).toEqual([]);
  });

  it("goes on to its end when the signal is aborted meanwhile", async () => {
    const abort = new AbortController();
    const played = await playedFiles(() => {
      abort.abort(new Error("stop"));
      return { result: commitResult({ done: 3 }) };
    });
    expect(await commitTree(played.context, { ...place, records, signal: abort.signal })).toEqual({
      committed: true,
    });
    expect(played.kills).toBe(0);
  });
});

describe("a recovery", () => {
  it("says how much was put back", async () => {
    const played = await playedFiles(() => ({ result: commitResult({ done: 9, failed: 4 }) }));
    expect(await recoverTree(played.context, place)).toEqual({ undone: 9 });
    expect(played.requests).toMatchObject([{ operation: "recover", path: Buffer.from("/base"), second }]);
    expect(await recoverTree((await playedFiles(() => ({}))).context, place)).toEqual({ undone: 0 });
  });

  it.each<[string, PlayedAnswer, object]>([
    [
      "has failed",
      { errno: 74 },
      { errno: "EBADMSG", message: expect.stringContaining("cannot recover /base: ") },
    ],
    ["was lost", { kind: 3 }, { code: "file.failed", errno: "EIO" }],
    [
      "could not put all back",
      { result: commitResult({ flags: 2 }) },
      { hint: expect.stringContaining(stage.name) },
    ],
    ["was answered wrongly", { result: Buffer.alloc(3) }, { code: "protocol.invalid" }],
  ])("that %s is an error", async (_name, answer, error) => {
    const { context } = await playedFiles(() => answer);
    await expect(recoverTree(context, place)).rejects.toMatchObject(error);
  });
});

describe("a stage", () => {
  it("has a name and a key of its own each time", () => {
    const [one, other] = [newStage(), newStage()];
    expect(one.name).toMatch(/^\.brig-stage-[0-9a-f]{16}$/);
    expect(one.key).toHaveLength(32);
    expect(one.name).not.toBe(other.name);
    expect(one.key).not.toEqual(other.key);
  });

  it("is known by the beginning of a path", () => {
    expect([".brig-stage-", ".brig-stage-1/a"].map((path) => isStage(Buffer.from(path)))).toEqual([
      true,
      true,
    ]);
    expect([".brig-stage", "a/.brig-stage-1", ""].map((path) => isStage(Buffer.from(path)))).toEqual([
      false,
      false,
      false,
    ]);
  });

  it("is a directory that only its owner enters, with a file for each content", async () => {
    const played = await playedFiles(() => ({}));
    await makeStage(played.context, place);
    expect(played.requests).toMatchObject([
      { operation: "mkdir", path: Buffer.from("/base/.brig-stage-00ff"), mode: 0o700, flags: 128 },
    ]);
    expect(stagedPath(place, 12)).toBe("/base/.brig-stage-00ff/12");
    const signal = AbortSignal.abort(new Error("stop"));
    await expect(makeStage(played.context, { ...place, signal })).rejects.toThrow("stop");
  });
});
