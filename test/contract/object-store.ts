import { createHash, randomBytes } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { ObjectStore, StoredFile } from "../../src/batch/queue/store.js";
import { temporaryFolder } from "../support/batch-runs.js";

/** What every store promises. */
export function describeObjectStore(name: string, open: () => Promise<ObjectStore>): void {
  const key = "runs/0123456789abcdef/one.tar.gz";
  const limits = { maxBytes: 10_000_000 };

  async function fileOf(content: string | Buffer): Promise<StoredFile> {
    const path = join(await temporaryFolder(), "file");
    await writeFile(path, content);
    const bytes = Buffer.from(content);
    return { path, sizeBytes: bytes.length, sha256: createHash("sha256").update(bytes).digest("hex") };
  }

  async function contentOf(store: ObjectStore): Promise<Buffer> {
    const file = join(await temporaryFolder(), "fetched");
    expect(await store.get(key, file, limits)).toBe("fetched");
    return await readFile(file);
  }

  describe(`a store: ${name}`, () => {
    it("gives back what was put, whatever its size", async () => {
      const store = await open();
      const large = randomBytes(3_000_000);
      expect(await store.put(key, await fileOf(large))).toBe("stored");
      expect((await contentOf(store)).equals(large)).toBe(true);
      const empty = "runs/0123456789abcdef/empty";
      expect(await store.put(empty, await fileOf(""))).toBe("stored");
      expect(await store.has(empty)).toBe(true);
    });

    it("keeps the first of those that are put at once under one name", async () => {
      const store = await open();
      const files = await Promise.all(["a", "b", "c", "d"].map((text) => fileOf(text.repeat(100_000))));
      const puts = await Promise.all(files.map((file) => store.put(key, file)));
      expect(puts.toSorted()).toEqual(["present", "present", "present", "stored"]);
      const winner = await readFile(files[puts.indexOf("stored")]?.path ?? "");
      expect((await contentOf(store)).equals(winner)).toBe(true);
    });

    it("says that an object is missing, before it was put and after it was removed", async () => {
      const store = await open();
      const file = join(await temporaryFolder(), "fetched");
      expect(await store.get(key, file, limits)).toBe("missing");
      expect(await store.has(key)).toBe(false);
      await store.remove(key);
      await store.put(key, await fileOf("x"));
      await store.remove(key);
      expect(await store.has(key)).toBe(false);
    });

    it("refuses an object that is too large", async () => {
      const store = await open();
      await store.put(key, await fileOf("x".repeat(1000)));
      const file = join(await temporaryFolder(), "fetched");
      await expect(store.get(key, file, { maxBytes: 999 })).rejects.toMatchObject({ code: "store.failed" });
    });
  });
}
