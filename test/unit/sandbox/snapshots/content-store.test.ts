import { createHash } from "node:crypto";
import { chmod, mkdir, mkdtemp, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterEach, beforeEach, expect, it } from "vitest";
import { ContentStore } from "../../../../src/sandbox/snapshots/content-store.js";

let directory = "";
let store: ContentStore;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "brig-content-store-"));
  store = new ContentStore(join(directory, "objects"));
});

afterEach(async () => {
  await rm(directory, { recursive: true });
});

const hashOf = (text: string) => createHash("sha256").update(text).digest("hex");
const pathOf = (sha256: string) => join(directory, "objects", sha256.slice(0, 2), sha256.slice(2));

async function textOf(from: ContentStore, sha256: string): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of from.read(sha256)) pieces.push(piece);
  return Buffer.concat(pieces).toString();
}

it("gives back what was stored in pieces", async () => {
  const stored = await store.add(Readable.from([Buffer.from("one "), Buffer.from("two")]));
  expect(stored).toEqual({ sha256: hashOf("one two"), sizeBytes: 7, isNew: true });
  expect(await store.add(Buffer.from("one two"))).toEqual({ ...stored, isNew: false });
  expect(await textOf(store, stored.sha256)).toBe("one two");
});

it("stores the empty content", async () => {
  const { sha256, sizeBytes } = await store.add(Buffer.alloc(0));
  expect([sizeBytes, await textOf(store, sha256)]).toEqual([0, ""]);
});

it("stores a content once, also when it is stored several times at once", async () => {
  await Promise.all(Array.from({ length: 20 }, () => store.add(Buffer.from("same"))));
  expect(await readdir(join(directory, "objects"))).toEqual([hashOf("same").slice(0, 2)]);
  expect(await textOf(store, hashOf("same"))).toBe("same");
});

it("leaves nothing of a source that fails", async () => {
  async function* failing() {
    yield Buffer.from("begun");
    throw new Error("the source failed");
  }
  await expect(store.add(failing())).rejects.toThrow("the source failed");
  expect(await readdir(join(directory, "objects"))).toEqual([]);
});

it("takes over a content of another store as a second name of the same file", async () => {
  const { sha256 } = await store.add(Buffer.from("shared"));
  const second = new ContentStore(join(directory, "second"));
  await second.addFrom(store, sha256);
  await second.addFrom(store, sha256);
  expect(await textOf(second, sha256)).toBe("shared");
  expect((await stat(pathOf(sha256))).nlink).toBe(2);
});

it("takes over nothing that the other store does not have", async () => {
  const second = new ContentStore(join(directory, "second"));
  await expect(second.addFrom(store, hashOf("never stored"))).rejects.toMatchObject({
    code: "snapshot.invalid",
    message: expect.stringMatching(/ is missing$/),
  });
  expect(await second.has(hashOf("never stored"))).toBe(false);
});

it("lets nobody write to a content, and nobody else read it", async () => {
  const { sha256 } = await store.add(Buffer.from("mine"));
  expect((await stat(pathOf(sha256))).mode & 0o777).toBe(0o400);
  for (const path of [join(directory, "objects"), join(directory, "objects", sha256.slice(0, 2))])
    expect((await stat(path)).mode & 0o777).toBe(0o700);
  const second = new ContentStore(join(directory, "second"));
  await second.addFrom(store, sha256);
  expect((await stat(join(directory, "second", sha256.slice(0, 2)))).mode & 0o777).toBe(0o700);
});

it("says that a content cannot be read, and why", async () => {
  const sha256 = hashOf("a directory");
  await mkdir(pathOf(sha256), { recursive: true });
  await expect(textOf(store, sha256)).rejects.toMatchObject({
    code: "snapshot.invalid",
    message: expect.stringMatching(/ cannot be read: EISDIR$/),
    hint: expect.stringContaining("remove it"),
    cause: { code: "EISDIR" },
  });
});

it("cannot store where no directory can be made", async () => {
  await writeFile(join(directory, "objects"), "");
  await expect(store.add(Buffer.from("x"))).rejects.toMatchObject({ code: "ENOTDIR" });
});

it("says that a content is missing", async () => {
  await expect(textOf(store, hashOf("never stored"))).rejects.toMatchObject({
    code: "snapshot.invalid",
    message: expect.stringMatching(/ is missing$/),
  });
});

it("notices a content that was changed", async () => {
  const { sha256 } = await store.add(Buffer.from("true"));
  await chmod(pathOf(sha256), 0o600);
  await writeFile(pathOf(sha256), "lies");
  await expect(textOf(store, sha256)).rejects.toMatchObject({
    code: "snapshot.invalid",
    message: expect.stringMatching(/ has been changed$/),
  });
});
