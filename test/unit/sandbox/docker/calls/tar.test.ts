import { once } from "node:events";
import { buffer } from "node:stream/consumers";
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, it } from "vitest";
import {
  readTar,
  readTarFile,
  streamTar,
  type TarEntry,
} from "../../../../../src/sandbox/docker/calls/tar.js";

async function* failing(): AsyncGenerator<TarEntry> {
  yield await Promise.reject(new Error("unreadable"));
}

it("an archive takes no entry before it is read, so a failure cannot come too early", async () => {
  const tar = streamTar(failing());
  await nextTurn();
  await expect(buffer(tar)).rejects.toThrow("unreadable");
});

it("an archive that nobody reads takes no entry at all", async () => {
  let taken = 0;
  async function* entries(): AsyncGenerator<TarEntry> {
    taken++;
    yield { path: "a", mode: 0o755, kind: "directory" };
  }
  const tar = streamTar(entries());
  const closed = once(tar, "close");
  tar.destroy();
  await closed;
  expect(taken).toBe(0);
});

it("an archive ends with the error of a content", async () => {
  async function* content(): AsyncGenerator<Uint8Array> {
    yield Buffer.from("x");
    throw new Error("gone");
  }
  const tar = streamTar([{ path: "a", mode: 0o644, kind: "file", sizeBytes: 2, content }]);
  await expect(buffer(tar)).rejects.toThrow("gone");
});

it("an archive has its entries in their order", async () => {
  const content = async function* () {
    yield Buffer.from("x");
  };
  const tar = streamTar([
    { path: "d", mode: 0o755, kind: "directory" },
    { path: "d/f", mode: 0o644, kind: "file", sizeBytes: 1, content },
    { path: "l", mode: 0o777, kind: "link", target: "d" },
  ]);
  const found: string[] = [];
  for await (const { kind, path, content } of readTar(tar)) {
    const bytes: Uint8Array[] = [];
    if (kind === "file") for await (const piece of content) bytes.push(piece);
    found.push(`${kind} ${path} ${Buffer.concat(bytes)}`);
  }
  expect(found).toEqual(["directory d ", "file d/f x", "symbolic-link l "]);
});

it("an archive that cannot be opened is an error of reading it", async () => {
  await expect(readTarFile("/no/such/archive.tgz", "a")).rejects.toMatchObject({ code: "ENOENT" });
});
