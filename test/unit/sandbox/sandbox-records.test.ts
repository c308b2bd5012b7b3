import { execFileSync } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { recordedNow, writeRecord } from "../../../src/sandbox/sandbox-records.js";
import { temporaryFolder } from "../../support/batch-runs.js";

const id = (last: number) => `00000000-0000-4000-8000-00000000000${last}`;

it("only what is a record is read of what is among the records", async () => {
  const home = await temporaryFolder();
  const owner = { pid: process.pid, startedAt: null, bootId: null, host: "here" };
  const record = { sessionId: id(1), owner, endpoint: "unix:///e", containerId: null, placeholders: [] };
  writeRecord(home, record);
  const folder = join(home, "sandboxes");
  execFileSync("mkfifo", [join(folder, `1.${id(2)}.json`)]);
  await mkdir(join(folder, `1.${id(3)}.json`));
  await writeFile(join(folder, `1.${id(4)}.json`), "{");
  await writeFile(join(folder, "other.json"), JSON.stringify({ ...record, sessionId: id(5) }));
  expect(recordedNow(home)).toEqual([record]);
});
