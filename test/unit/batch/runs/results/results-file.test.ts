import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ResultsFile, readResultLines } from "../../../../../src/batch/runs/results/results-file.js";
import { playedResult } from "../../../../support/played-attempts.js";
import { SmallDisk, whyNoSmallDisk } from "../../../../support/small-disk.js";

describe("results.jsonl", () => {
  it.skipIf(whyNoSmallDisk !== null)(
    "keeps nothing of a line that the disk has no room for [needs root, to mount a small disk]",
    async () => {
      await using disk = SmallDisk.mount(1);
      const path = join(disk.path, "results.jsonl");
      await using results = await ResultsFile.open(path);
      await results.append(playedResult({ task: "first" }));
      await disk.fill();

      const large = { ...playedResult({ task: "large" }), warnings: ["x".repeat(100_000)] };
      await expect(results.append(large)).rejects.toMatchObject({ code: "ENOSPC" });
      await disk.makeRoom();
      await results.append(playedResult({ task: "last" }));

      const tasks: (string | undefined)[] = [];
      for await (const line of readResultLines(path)) tasks.push(line?.task);
      expect(tasks).toEqual(["first", "last"]);
    },
  );
});
