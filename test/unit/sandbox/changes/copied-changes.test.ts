import { expect, it } from "vitest";
import { type CopiedChanges, CopyCount } from "../../../../src/sandbox/changes/copied-changes.js";
import type { Content } from "../../../../src/sandbox/files/file-request.js";

function counting(): { count: CopyCount; told: CopiedChanges[] } {
  const told: CopiedChanges[] = [];
  return { count: new CopyCount((copied) => void told.push(copied)), told };
}

async function* pieces(...sizes: number[]): AsyncGenerator<{ offset: number; data: Buffer }> {
  for (const size of sizes) yield { offset: 0, data: Buffer.alloc(size) };
}

async function read(content: Content): Promise<void> {
  if (!Buffer.isBuffer(content)) for await (const _piece of content);
}

it("the bytes of a large file count as they pass, and no more of them than it was expected to have", async () => {
  const { count, told } = counting();
  count.expect([10, 4]);
  await count.file(10, pieces(6, 7), read);
  await count.file(4, Buffer.alloc(4), read);
  expect(told.map(({ files, bytes }) => [files, bytes])).toEqual([
    [0, 0],
    [0, 6],
    [0, 10],
    [1, 10],
    [2, 14],
  ]);
  expect(told.at(-1)).toMatchObject({ totalFiles: 2, totalBytes: 14 });
});

it("a file that is shorter by now counts as a whole, and one that cannot be copied does not", async () => {
  const { count, told } = counting();
  count.expect([10, 10]);
  await count.file(10, pieces(3), read);
  await expect(count.file(10, pieces(1), () => Promise.reject(new Error("full")))).rejects.toThrow("full");
  expect(told.at(-1)).toEqual({ files: 1, bytes: 10, totalFiles: 2, totalBytes: 20 });
});

it("what is expected twice is done after the second time, and its announcement changes no total", () => {
  const { count, told } = counting();
  count.expectTwice([4, 4]);
  count.expect([4, 4]);
  count.add([4, 4]);
  expect(told.at(-1)).toEqual({ files: 1, bytes: 4, totalFiles: 2, totalBytes: 8 });
  count.expect([4, 4]);
  count.add([4, 4]);
  expect(told.at(-1)).toEqual({ files: 2, bytes: 8, totalFiles: 2, totalBytes: 8 });
});

it("more than was expected adds to the total", () => {
  const { count, told } = counting();
  count.expect([1]);
  count.add([1]);
  count.expect([1, 1]);
  expect(told.at(-1)).toEqual({ files: 1, bytes: 1, totalFiles: 3, totalBytes: 3 });
});

it("so much as is reached of a file counts until the file itself does", () => {
  const { count, told } = counting();
  count.expect([10, 4]);
  for (const bytes of [3, 8, 7]) count.reach(bytes);
  count.add([10]);
  count.reach(1);
  expect(told.map(({ files, bytes }) => [files, bytes])).toEqual([
    [0, 0],
    [0, 3],
    [0, 8],
    [0, 8],
    [1, 10],
    [1, 11],
  ]);
});
