import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readCurrentProcess } from "../../../../src/lib/file-lock.js";
import { isLocked, lockDirectory, withLock } from "../../../../src/sandbox/images/lock.js";

const uniqueName = () => `brig/test:${process.pid}-${process.hrtime.bigint()}`;

describe("withLock", () => {
  it("runs one piece of work at a time under a name", async () => {
    const name = uniqueName();
    let running = 0;
    let waited = 0;
    const work = async () => {
      running += 1;
      expect(running).toBe(1);
      // The first holds it until the others have found it held.
      await expect.poll(() => waited).toBe(2);
      running -= 1;
    };
    const onWait = () => {
      waited += 1;
    };
    await Promise.all([1, 2, 3].map(() => withLock(name, work, { onWait })));
    expect(waited).toBe(2);
  });

  it("lets different names run together", async () => {
    await withLock(uniqueName(), async () => {
      expect(await withLock(uniqueName(), async () => "inner")).toBe("inner");
    });
  });

  it("is seen by others as long as the work goes on", async () => {
    const name = uniqueName();
    const { processes } = await readCurrentProcess();
    expect(await isLocked(name, processes)).toBe(false);
    expect(await withLock(name, () => isLocked(name, processes))).toBe(true);
    expect(await isLocked(name, processes)).toBe(false);
  });

  it("is released when the work fails", async () => {
    const name = uniqueName();
    await expect(withLock(name, () => Promise.reject(new Error("failed")))).rejects.toThrow("failed");
    expect(await withLock(name, async () => "again")).toBe("again");
  });

  it("takes over from a process that has died", async () => {
    const name = uniqueName();
    const { owner } = await readCurrentProcess();
    const claim = `.${name.replace(/[^\w.-]/g, "_")}.0123456789ab.lock`;
    const file = join(lockDirectory(), claim);
    await withLock(name, async () => "made the directory");
    writeFileSync(file, JSON.stringify({ ...owner, startedAt: "1" }));
    expect(await withLock(name, async () => "taken")).toBe("taken");
    expect(existsSync(file)).toBe(false);
  });

  it("waits for a living process until the signal is aborted", async () => {
    const name = uniqueName();
    await withLock(name, async () => {
      const signal = AbortSignal.timeout(50);
      await expect(withLock(name, async () => "never", { signal })).rejects.toThrow(/timeout/);
    });
  });
});
