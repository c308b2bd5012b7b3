import { appendFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ResultIndex } from "../../../../src/batch/report/view/run-folder.js";
import { temporaryDirectory } from "../../../support/sandbox.js";
import { attemptResult, mixedRun } from "../../../support/view/run-fixture.js";

const line = (task: string, reward = 1, attempt = 1) =>
  `${JSON.stringify(attemptResult({ task, attempt, reward }))}\n`;

describe("the index of results.jsonl", () => {
  it("reads what was appended, and a torn line only when it is whole", async () => {
    await using folder = await temporaryDirectory();
    const file = join(folder.path, "results.jsonl");
    const index = new ResultIndex(folder.path);
    await index.refresh();
    expect(index.rows()).toEqual([]);

    const second = line("b");
    await writeFile(file, line("a") + second.slice(0, 40));
    await index.refresh();
    expect(index.rows().map(({ task }) => task)).toEqual(["a"]);

    await appendFile(file, second.slice(40));
    await index.refresh();
    expect(index.rows().map(({ task }) => task)).toEqual(["a", "b"]);
    expect(index.unreadableLines).toBe(0);
  });

  it("counts lines that are no results, and skips one that is too long without keeping it", async () => {
    await using folder = await temporaryDirectory();
    const long = `{"task":"${"x".repeat(9 * 1024 * 1024)}"}\n`;
    await writeFile(
      join(folder.path, "results.jsonl"),
      `${line("a")}nonsense\n\n${long}${line("b")}{"task":"c"}\n`,
    );
    const index = new ResultIndex(folder.path);
    await index.refresh();
    expect(index.rows().map(({ task }) => task)).toEqual(["a", "b"]);
    expect(index.unreadableLines).toBe(3);
    expect(index.result(1)?.task).toBe("b");
  });

  it("lets the last line about an attempt win, and reports it as a change of its row", async () => {
    await using folder = await temporaryDirectory();
    const file = join(folder.path, "results.jsonl");
    await writeFile(file, line("a", 0) + line("b", 0));
    const index = new ResultIndex(folder.path);
    await index.refresh();
    const first = index.changes(0, 100);
    expect(first.rows.map(({ at, row }) => [at, row.reward])).toEqual([
      [0, 0],
      [1, 0],
    ]);

    await appendFile(file, line("a", 1) + line("a", 0.5, 2));
    await index.refresh();
    const then = index.changes(first.seq, 100);
    expect(then.rows.map(({ at, row }) => [at, row.attempt, row.reward])).toEqual([
      [0, 1, 1],
      [2, 2, 0.5],
    ]);
    expect(index.changes(then.seq, 100)).toEqual({ rows: [], seq: then.seq });
    expect(index.result(0)?.reward).toBe(1);
    // Whoever asks from the beginning gets each row once.
    expect(index.changes(0, 100).rows.map(({ at }) => at)).toEqual([1, 0, 2]);
  });

  it("gives all changes in pieces", async () => {
    await using folder = await temporaryDirectory();
    const { attempts } = mixedRun(25, { files: false });
    const lines = attempts.map(({ result }) => `${JSON.stringify(result)}\n`);
    await writeFile(join(folder.path, "results.jsonl"), lines.join(""));
    const index = new ResultIndex(folder.path);
    await index.refresh();
    const seen: number[] = [];
    for (let seq = 0; seq < index.seq; ) {
      const piece = index.changes(seq, 10);
      seen.push(...piece.rows.map(({ at }) => at));
      seq = piece.seq;
    }
    expect(seen).toEqual(attempts.map((_, at) => at));
  });

  it("begins anew when the file was replaced by a shorter one", async () => {
    await using folder = await temporaryDirectory();
    const file = join(folder.path, "results.jsonl");
    await writeFile(file, line("a") + line("b"));
    const index = new ResultIndex(folder.path);
    await index.refresh();
    const before = index.generation;
    await rm(file);
    await writeFile(file, line("c"));
    await index.refresh();
    expect(index.rows().map(({ task }) => task)).toEqual(["c"]);
    expect(index.generation).not.toBe(before);
  });
});
