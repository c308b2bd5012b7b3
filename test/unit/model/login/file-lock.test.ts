import { readdir, readFile, stat, utimes, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { execa } from "execa";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { ownerOf, readHostProcesses } from "../../../../src/lib/owner.js";
import { acquireFileLock } from "../../../../src/model/login/file-lock.js";
import { temporaryDirectory } from "../../../support/sandbox.js";

const counter = fileURLToPath(new URL("../../../fixtures/count-under-lock.ts", import.meta.url));
let directory: string;
let lock: string;

beforeEach(async () => {
  const made = await temporaryDirectory();
  onTestFinished(() => made[Symbol.asyncDispose]());
  directory = made.path;
  lock = join(directory, "lock");
});

function count(file: string, ...args: string[]) {
  return execa(process.execPath, ["--import", "tsx", counter, file, ...args], { reject: false });
}

/** A lock as a process leaves it that is no longer there. */
async function abandon(change: object = {}): Promise<void> {
  const processes = await readHostProcesses(hostname());
  const owner = { ...(await ownerOf(process.pid, processes)), startedAt: "1", ...change };
  await writeFile(lock, JSON.stringify({ token: "theirs", owner }));
}

describe("a lock", () => {
  it("is held by one at a time, and leaves nothing", async () => {
    const order: string[] = [];
    const work = async (name: string) => {
      await using _lock = await acquireFileLock(lock);
      order.push(name, name);
    };
    await Promise.all(["a", "b", "c"].map(work));
    expect(order.filter((name, index) => index % 2 === 0 && order[index + 1] !== name)).toEqual([]);
    expect(await readdir(directory)).toEqual([]);
  });

  it("lets no count of real processes get lost, though some are killed while they hold it", {
    timeout: 30_000,
  }, async () => {
    const file = join(directory, "count");
    await writeFile(file, "0");
    await Promise.all([
      count(file, "20"),
      count(file, "20"),
      count(file, "11", "dies"),
      count(file, "6", "dies"),
    ]);
    expect(await readFile(file, "utf8")).toBe("55");
    // The last one to have held it may be one of those that died.
    await (await acquireFileLock(`${file}.lock`))[Symbol.asyncDispose]();
    expect(await readdir(directory)).toEqual(["count"]);
  });

  it("of a process whose id has been given out again is taken over by one of many", async () => {
    await abandon();
    let holders = 0;
    let most = 0;
    const work = async () => {
      await using _lock = await acquireFileLock(lock);
      holders += 1;
      most = Math.max(most, holders);
      await new Promise((resolve) => setTimeout(resolve, 1));
      holders -= 1;
    };
    await Promise.all(Array.from({ length: 8 }, work));
    expect(most).toBe(1);
    expect(await readdir(directory)).toEqual([]);
  });

  it("is taken over although who wanted to take it over died too", async () => {
    await abandon();
    await writeFile(`${lock}.removal`, await readFile(lock));
    await using _lock = await acquireFileLock(lock);
    expect(await readdir(directory)).toEqual(["lock"]);
  });

  it.each([
    ["of another machine", { host: "elsewhere" }],
    ["of a process whose start is not known", { startedAt: null }],
  ])("%s is waited for, and taken over once it is older than anybody works", async (_name, change) => {
    await abandon(change);
    await expect(acquireFileLock(lock, { patienceMs: 120 })).rejects.toMatchObject({ code: "model.auth" });
    const long = new Date(Date.now() - 3 * 60_000);
    await utimes(lock, long, long);
    await using _lock = await acquireFileLock(lock, { patienceMs: 120 });
    expect(JSON.parse(await readFile(lock, "utf8")).token).not.toBe("theirs");
  });

  it("that a power failure left empty is taken over once it is old", async () => {
    await writeFile(lock, "");
    await expect(acquireFileLock(lock, { patienceMs: 60 })).rejects.toMatchObject({ code: "model.auth" });
    await utimes(lock, new Date(0), new Date(0));
    await using _lock = await acquireFileLock(lock, { patienceMs: 60 });
    expect((await stat(lock)).size).toBeGreaterThan(0);
  });

  it("of a living process is never broken: the wait ends with who holds it", async () => {
    await using _lock = await acquireFileLock(lock);
    await utimes(lock, new Date(0), new Date(0));
    await expect(acquireFileLock(lock, { patienceMs: 120 })).rejects.toMatchObject({
      code: "model.auth",
      message: `process ${process.pid} keeps the login locked`,
      hint: expect.stringContaining(lock),
    });
  });

  it("is not waited for after an abort", async () => {
    await using _lock = await acquireFileLock(lock);
    const controller = new AbortController();
    const wait = acquireFileLock(lock, { signal: controller.signal });
    const reason = new Error("enough");
    controller.abort(reason);
    await expect(wait).rejects.toBe(reason);
    expect(await readdir(directory)).toEqual(["lock"]);
  });
});
