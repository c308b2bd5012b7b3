import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RunFolder } from "../../../../src/batch/report/view/run-folder.js";
import { writeStaticPage } from "../../../../src/batch/report/view/static-page.js";
import { temporaryDirectory } from "../../../support/sandbox.js";
import { mixedRun, writeRun } from "../../../support/view/run-fixture.js";

/** A run of three hundred attempts, which nothing changes. */
let run = "";
let made: Awaited<ReturnType<typeof temporaryDirectory>>;

beforeAll(async () => {
  made = await temporaryDirectory();
  run = join(made.path, "run");
  await writeRun(run, mixedRun(300));
});
afterAll(() => made[Symbol.asyncDispose]());

const asset = { script: "", style: "", scriptHash: "", styleHash: "" };

describe("writing the page of a run", () => {
  it("ends at an abort that comes while the details are read", async () => {
    const folders = [await RunFolder.open(run)];
    const ending = new AbortController();
    const pieces: string[] = [];
    const write = async (piece: string) => {
      pieces.push(piece);
      // The head is the first piece. Nothing else is written before the details of all these attempts are read.
      setImmediate(() => ending.abort(new Error("ended by the test")));
    };
    const written = writeStaticPage(folders, write, {
      asset,
      maxDetailBytes: 1e9,
      signal: ending.signal,
    });
    await expect(written).rejects.toThrow("ended by the test");
    expect(pieces).toHaveLength(1);
  });

  it("leaves out the details of no attempt if there is room for all", async () => {
    const pieces: string[] = [];
    const report = await writeStaticPage(
      [await RunFolder.open(run)],
      async (piece) => void pieces.push(piece),
      { asset, maxDetailBytes: 1e9, signal: new AbortController().signal },
    );
    expect(report).toEqual({ attempts: 300, leftOut: 0 });
    const few = await writeStaticPage([await RunFolder.open(run)], async () => undefined, {
      asset,
      maxDetailBytes: 1,
      signal: new AbortController().signal,
    });
    expect(few.leftOut).toBeGreaterThan(0);
    expect(pieces.join("")).toContain('id="block-0"');
  });
});
