import { describe, expect, it } from "vitest";
import { OutputBudget } from "../../../../../src/services/serve/processes/output-budget.js";
import {
  KEPT_OUTPUT_BYTES,
  OutputLog,
  type OutputPart,
  type OutputStreamName,
} from "../../../../../src/services/serve/processes/output-log.js";

/** What a reading gave, each chunk as `stream:text`. */
function shown({ chunks, ...rest }: OutputPart): object {
  return { ...rest, text: chunks.map(({ stream, data }) => `${stream}:${data}`).join(" ") };
}

function logOf(pieces: readonly [OutputStreamName, string][], maxBytes?: number): OutputLog {
  const log = new OutputLog(maxBytes);
  for (const [stream, text] of pieces) log.add(stream, Buffer.from(text));
  return log;
}

const both: [OutputStreamName, string][] = [
  ["stdout", "abc"],
  ["stderr", "de"],
  ["stdout", "f"],
  ["stdout", "gh"],
];

describe("what comes after a cursor, which counts the bytes of all streams", () => {
  it.each([
    ["the beginning", 0, undefined, "stdout:abc stderr:de stdout:fgh", 8, 0],
    ["the middle of a piece", 1, undefined, "stdout:bc stderr:de stdout:fgh", 8, 0],
    ["the border between two streams", 3, undefined, "stderr:de stdout:fgh", 8, 0],
    ["the middle of pieces that are kept joined", 6, undefined, "stdout:gh", 8, 0],
    ["the last byte", 7, undefined, "stdout:h", 8, 0],
    ["the end", 8, undefined, "", 8, 0],
    ["a place beyond the end", 100, undefined, "", 100, 0],
    ["the beginning, one byte", 0, 1, "stdout:a", 1, 0],
    ["the beginning, up to the border", 0, 3, "stdout:abc", 3, 0],
    ["the beginning, across the border", 0, 4, "stdout:abc stderr:d", 4, 0],
    ["the middle, exactly the rest", 4, 4, "stderr:e stdout:fgh", 8, 0],
    ["the middle, more than the rest", 4, 5, "stderr:e stdout:fgh", 8, 0],
  ])("after %s", async (_name, after, maxBytes, text, next, lost) => {
    const log = logOf(both);
    const expected = { text, next, lost, ended: false };
    expect(shown(await log.read({ after, maxBytes }))).toEqual(expected);
    expect(shown(await log.read({ after, maxBytes }))).toEqual(expected);
  });

  it.each([
    ["more than is kept", 0, "stdout:c stderr:de stdout:fgh", 2],
    ["one byte more than is kept", 1, "stdout:c stderr:de stdout:fgh", 1],
    ["exactly what is kept", 2, "stdout:c stderr:de stdout:fgh", 0],
    ["a part of what is kept", 4, "stderr:e stdout:fgh", 0],
  ])("if only the latest is kept: %s", async (_name, after, text, lost) => {
    const log = logOf(both, 6);
    expect(shown(await log.read({ after }))).toEqual({ text, next: 8, lost, ended: false });
  });

  it("begins a limited reading after what is lost", async () => {
    expect(shown(await logOf(both, 6).read({ after: 0, maxBytes: 2 }))).toEqual({
      ...{ text: "stdout:c stderr:d", next: 4, lost: 2, ended: false },
    });
  });

  it("is nothing but lost if nothing is kept", async () => {
    expect(shown(await logOf(both, 0).read())).toEqual({ text: "", next: 8, lost: 8, ended: false });
    const cleared = logOf(both);
    cleared.clear();
    expect(shown(await cleared.read({ after: 5 }))).toEqual({ text: "", next: 8, lost: 3, ended: false });
    expect(cleared.memoryBytes).toBe(0);
  });

  it("is the same bytes in any number of readings of any size", async () => {
    const log = logOf(both);
    for (const maxBytes of [1, 2, 3, 5, 7]) {
      let text = "";
      for (let at = 0; at < log.end; ) {
        const { chunks, next } = await log.read({ after: at, maxBytes });
        text += chunks.map(({ data }) => data.toString()).join("");
        at = next;
      }
      expect(text).toBe("abcdefgh");
    }
  });

  it("does not change in a reader's hands when more comes or it is dropped", async () => {
    const log = new OutputLog(100);
    log.add("stdout", Buffer.from("first"));
    const { chunks } = await log.read();
    for (let count = 0; count < 50; count++) log.add("stdout", Buffer.from("later"));
    expect(chunks.map(({ data }) => data.toString())).toEqual(["first"]);
  });
});

describe("the end", () => {
  it("is said once everything before it was given", async () => {
    const log = logOf([["stdout", "abc"]]);
    log.close();
    expect(shown(await log.read({ maxBytes: 2 }))).toEqual({
      text: "stdout:ab",
      next: 2,
      lost: 0,
      ended: false,
    });
    expect(shown(await log.read({ after: 2 }))).toEqual({ text: "stdout:c", next: 3, lost: 0, ended: true });
    expect(shown(await log.read({ after: 3, waitMs: 60_000 }))).toMatchObject({ next: 3, ended: true });
    expect(shown(await log.read({ after: 9, waitMs: 60_000 }))).toMatchObject({ next: 9, ended: true });
  });

  it("is said of a process that has printed nothing", async () => {
    const log = new OutputLog();
    expect((await log.read()).ended).toBe(false);
    log.close();
    expect(shown(await log.read({ waitMs: 60_000 }))).toEqual({ text: "", next: 0, lost: 0, ended: true });
  });
});

describe("a reader that waits", () => {
  it("gets the next byte as soon as it comes, and so does every other one", async () => {
    const log = new OutputLog();
    const readers = [
      log.read({ waitMs: 60_000 }),
      log.read({ waitMs: 60_000 }),
      log.read({ after: 2, waitMs: 60_000 }),
    ];
    log.add("pty", Buffer.from("ab"));
    expect((await Promise.all(readers.slice(0, 2))).map(shown)).toEqual([
      { text: "pty:ab", next: 2, lost: 0, ended: false },
      { text: "pty:ab", next: 2, lost: 0, ended: false },
    ]);
    log.add("pty", Buffer.from("c"));
    expect(shown(await (readers[2] as Promise<OutputPart>))).toMatchObject({ text: "pty:c", next: 3 });
  });

  it("waits for a place beyond the end until there is something after it", async () => {
    const log = logOf([["stdout", "ab"]]);
    const reading = log.read({ after: 4, waitMs: 60_000 });
    log.add("stdout", Buffer.from("cd"));
    log.add("stdout", Buffer.from("ef"));
    expect(shown(await reading)).toMatchObject({ text: "stdout:ef", next: 6 });
  });

  it("gets nothing after its time, and the end when that comes", async () => {
    const log = new OutputLog();
    expect(shown(await log.read({ waitMs: 20 }))).toEqual({ text: "", next: 0, lost: 0, ended: false });
    const reading = log.read({ waitMs: 60_000 });
    log.close();
    expect((await reading).ended).toBe(true);
  });

  it("gives up with its signal's reason", async () => {
    const log = new OutputLog();
    const gone = new AbortController();
    const reading = log.read({ waitMs: 60_000, signal: gone.signal });
    gone.abort(new Error("the reader goes"));
    await expect(reading).rejects.toThrow("the reader goes");
    await expect(log.read({ signal: gone.signal })).rejects.toThrow("the reader goes");
  });
});

describe("a reader that follows", () => {
  it("gets everything once, from its cursor to the end", async () => {
    const log = logOf(both);
    const followed = texts(log, 4);
    log.add("stderr", Buffer.from("ij"));
    log.close();
    expect(await followed).toEqual(["stderr:e", "stdout:fgh", "stderr:ij"]);
    expect(await texts(log, 10)).toEqual([]);
  });

  it("is told what it was too slow for", async () => {
    const log = new OutputLog(4);
    const following = log.follow(0)[Symbol.asyncIterator]();
    log.add("stdout", Buffer.from("ab"));
    expect((await following.next()).value).toMatchObject({ lost: 0, data: Buffer.from("ab") });
    log.add("stdout", Buffer.from("cdefgh"));
    expect((await following.next()).value).toMatchObject({ lost: 2, data: Buffer.from("efgh") });
    log.close();
    expect((await following.next()).done).toBe(true);
  });

  it("ends with its signal's reason", async () => {
    const gone = new AbortController();
    const following = texts(new OutputLog(), 0, gone.signal);
    gone.abort(new Error("the reader goes"));
    await expect(following).rejects.toThrow("the reader goes");
  });

  async function texts(log: OutputLog, after: number, signal?: AbortSignal): Promise<string[]> {
    const found: string[] = [];
    for await (const { stream, data } of log.follow(after, signal)) found.push(`${stream}:${data}`);
    return found;
  }
});

describe("what is kept of much output", () => {
  it("is exactly the latest bytes", async () => {
    const log = new OutputLog();
    const piece = Buffer.alloc(100_000);
    for (let count = 0; count < 400; count++) log.add("stdout", piece.fill(count));
    const { chunks, next, lost } = await log.read();
    expect(next).toBe(40_000_000);
    expect(lost).toBe(next - KEPT_OUTPUT_BYTES);
    const kept = Buffer.concat(chunks.map(({ data }) => data));
    expect(kept.length).toBe(KEPT_OUTPUT_BYTES);
    expect([kept[0], kept.at(-1)]).toEqual([Math.floor(lost / 100_000) % 256, 399 % 256]);
  });

  it("takes hardly more memory than its bytes if these come one by one", () => {
    const log = new OutputLog();
    const byte = Buffer.from("x");
    for (let count = 0; count < 300_000; count++) log.add("stdout", byte);
    expect(log.end).toBe(300_000);
    expect(log.memoryBytes).toBeLessThan(400_000);
  });

  it("takes no more than its budget if the streams change with every byte", async () => {
    const budget = new OutputBudget(1_000_000);
    const log = new OutputLog(KEPT_OUTPUT_BYTES, budget);
    const byte = Buffer.from("x");
    for (let count = 0; count < 200_000; count++) log.add(count % 2 === 0 ? "stdout" : "stderr", byte);
    expect(budget.usedBytes).toBeLessThanOrEqual(1_000_000);
    expect(budget.usedBytes).toBe(log.memoryBytes);
    const { chunks, lost, next } = await log.read();
    expect(chunks.length + lost).toBe(200_000);
    expect(chunks.length).toBeGreaterThan(1000);
    expect(next).toBe(200_000);
  });
});

describe("a budget of several outputs", () => {
  it("is kept by dropping from the one that takes most", async () => {
    const budget = new OutputBudget(300_000);
    const [small, large] = [new OutputLog(undefined, budget), new OutputLog(undefined, budget)];
    small.add("stdout", Buffer.alloc(50_000));
    for (let count = 0; count < 20; count++) large.add("stdout", Buffer.alloc(50_000));
    expect(budget.usedBytes).toBeLessThanOrEqual(300_000);
    expect((await small.read()).lost).toBe(0);
    const { lost, next } = await large.read();
    expect(next).toBe(1_000_000);
    expect(lost).toBeGreaterThan(700_000);
    large.clear();
    small.clear();
    expect(budget.usedBytes).toBe(0);
  });

  it("keeps nothing of a piece that is larger than all of it", async () => {
    const log = new OutputLog(undefined, new OutputBudget(1000));
    log.add("stdout", Buffer.alloc(5000));
    expect(await log.read()).toEqual({ chunks: [], next: 5000, lost: 5000, ended: false });
    log.add("stdout", Buffer.from("x"));
    expect(await log.read({ after: 5000 })).toMatchObject({ next: 5001, lost: 0 });
  });
});
