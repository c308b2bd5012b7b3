import { spawnSync } from "node:child_process";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { basename, join } from "node:path";
import { describe, expect, it } from "vitest";
import { openWorkerFolder } from "../../../../../src/batch/queue/worker/run-worker.js";
import { readHostProcesses } from "../../../../../src/lib/owner.js";
import { temporaryDirectory } from "../../../../support/sandbox.js";

describe("the directory of a worker", () => {
  it("is made where those of killed workers were, which are removed, and goes with its worker", async () => {
    await using parent = await temporaryDirectory();
    const { host } = await readHostProcesses(hostname());
    const { pid: dead } = spawnSync("true");
    const killed = `worker-${host}.${dead}.abcdef`;
    const others = [
      `worker-${host}.${process.pid}.abcdef`,
      `worker-elsewhere.${dead}.abcdef`,
      `worker-${host}.${dead}`,
      "of-somebody-else",
    ].toSorted();
    for (const name of [killed, ...others]) {
      await mkdir(join(parent.path, name));
      await writeFile(join(parent.path, name, "file"), "");
    }
    const own = await openWorkerFolder(parent.path);
    const names = await readdir(parent.path);
    expect(names).toContain(basename(own.path));
    expect(names.filter((name) => name !== basename(own.path)).toSorted()).toEqual(others);
    await own[Symbol.asyncDispose]();
    expect((await readdir(parent.path)).toSorted()).toEqual(others);
  });
});
