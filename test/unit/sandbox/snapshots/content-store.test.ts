import { createHash } from "node:crypto";
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
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
  for await (const { data } of from.read(sha256)) pieces.push(data);
  return Buffer.concat(pieces).toString();
}

async function* pieces(...given: readonly (readonly [number, string])[]) {
  for (const [offset, text] of given) yield { offset, data: Buffer.from(text) };
}

async function read(from: ContentStore, sha256: string): Promise<[number, string][]> {
  const found: [number, string][] = [];
  for await (const { offset, data } of from.read(sha256)) found.push([offset, data.toString()]);
  return found;
}

it("gives back what was stored in pieces", async () => {
  const stored = await store.add(pieces([0, "one "], [4, "two"], [7, ""]));
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
    yield { offset: 0, data: Buffer.from("begun") };
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

describe("a content with holes", () => {
  const given = [
    [4096, "a"],
    [4097, "bc"],
    [2 ** 40, "d"],
    [2 ** 41, ""],
  ] as const;

  it("takes as much as its data and where they belong, and is given back with its holes", async () => {
    const stored = await store.add(pieces(...given));
    expect(stored).toEqual({
      sha256: expect.stringMatching(/^sparse-[0-9a-f]{64}$/),
      sizeBytes: 52,
      isNew: true,
    });
    expect(await store.add(pieces(...given))).toEqual({ ...stored, isNew: false });
    expect(await read(store, stored.sha256)).toEqual([
      [4096, "abc"],
      [2 ** 40, "d"],
      [2 ** 41, ""],
    ]);
    const second = new ContentStore(join(directory, "second"));
    await second.addFrom(store, stored.sha256);
    expect(await read(second, stored.sha256)).toEqual(await read(store, stored.sha256));
  });

  it("may have nothing else", async () => {
    const { sha256, sizeBytes } = await store.add(pieces([2 ** 40, ""]));
    expect([sizeBytes, await read(store, sha256)]).toEqual([16, [[2 ** 40, ""]]]);
  });

  it("is another one than a content that is as what is stored of it", async () => {
    const { sha256 } = await store.add(pieces(...given));
    const bytes = await readFile(sparsePathOf(sha256));
    const plain = await store.add(bytes);
    expect(plain.isNew).toBe(true);
    expect(await textOf(store, plain.sha256)).toBe(bytes.toString());
    expect(await read(store, sha256)).toHaveLength(3);
  });

  it.each<[string, (bytes: Buffer) => Buffer]>([
    ["has other data", (bytes) => Buffer.from(bytes).fill("x", 0, 1)],
    ["has lost its end", (bytes) => bytes.subarray(0, -1)],
    ["is empty", () => Buffer.alloc(0)],
    ["has more data", (bytes) => Buffer.concat([Buffer.from("x"), bytes])],
    ["has its data elsewhere", (bytes) => changed(bytes, 4, 4095n)],
    ["has its data in another order", (bytes) => changed(bytes, 20, 4097n)],
    ["is smaller than its data", (bytes) => changed(bytes, 36, 5n)],
    ["has more extents than bytes", (bytes) => changed(bytes, 44, 2n ** 62n)],
  ])("that %s was changed", async (_name, change) => {
    const { sha256 } = await store.add(pieces(...given));
    const path = sparsePathOf(sha256);
    const bytes = await readFile(path);
    await chmod(path, 0o600);
    await writeFile(path, change(bytes));
    await expect(read(store, sha256)).rejects.toMatchObject({
      code: "snapshot.invalid",
      message: expect.stringMatching(/ has been changed$/),
    });
  });

  function changed(bytes: Buffer, at: number, number: bigint): Buffer {
    const copy = Buffer.from(bytes);
    copy.writeBigUInt64LE(number, at);
    return copy;
  }

  function sparsePathOf(sha256: string): string {
    return `${pathOf(sha256.slice("sparse-".length))}.sparse`;
  }
});
