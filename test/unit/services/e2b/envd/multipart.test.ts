import { describe, expect, it } from "vitest";
import { boundaryOf, readParts } from "../../../../../src/services/e2b/envd/multipart.js";

const CONTENT = Buffer.concat([Buffer.from("\r\n--x\r\n-\r\n--"), Buffer.from([0, 255, 13, 10])]);

/** As the library of the platform writes it. */
async function written(): Promise<{ bytes: Buffer; boundary: string }> {
  const form = new FormData();
  form.append("file", new Blob([CONTENT]), 'a "b"/ü\n.txt');
  form.append("other", "text");
  form.append("file", new Blob([]), "empty");
  const response = new Response(form);
  return {
    bytes: Buffer.from(await response.arrayBuffer()),
    boundary: boundaryOf(`${response.headers.get("content-type")}`),
  };
}

async function* cut(bytes: Buffer, length: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += length) yield bytes.subarray(at, at + length);
}

async function read(body: AsyncIterable<Buffer>, boundary: string) {
  const parts: [string, string | undefined, string][] = [];
  for await (const { name, fileName, content } of readParts(body, boundary)) {
    const pieces: Buffer[] = [];
    for await (const piece of content) pieces.push(piece);
    parts.push([name, fileName, Buffer.concat(pieces).toString("latin1")]);
  }
  return parts;
}

describe("a form", () => {
  it.each([1, 2, 3, 7, 50, 100_000])("is the same if it comes in pieces of %d bytes", async (length) => {
    const { bytes, boundary } = await written();
    expect(await read(cut(bytes, length), boundary)).toEqual([
      ["file", 'a "b"/ü\n.txt', CONTENT.toString("latin1")],
      ["other", undefined, "text"],
      ["file", "empty", ""],
    ]);
  });

  it("whose contents nobody reads has the same parts", async () => {
    const { bytes, boundary } = await written();
    const names: string[] = [];
    for await (const { name } of readParts(cut(bytes, 5), boundary)) names.push(name);
    expect(names).toEqual(["file", "other", "file"]);
  });

  it("that breaks off anywhere is refused, and not taken for a whole one", async () => {
    const { bytes, boundary } = await written();
    const lastBoundary = bytes.lastIndexOf(`--${boundary}--`) + boundary.length + 4;
    for (let length = 0; length < lastBoundary; length++)
      await expect(read(cut(bytes.subarray(0, length), 64), boundary)).rejects.toMatchObject({ status: 400 });
    expect(await read(cut(bytes.subarray(0, lastBoundary), 64), boundary)).toHaveLength(3);
  });

  it("needs a boundary, and heads that end", async () => {
    expect(() => boundaryOf("multipart/form-data")).toThrow(/boundary/);
    expect(boundaryOf('multipart/form-data; boundary="a b"')).toBe("a b");
    const endless = async function* () {
      yield Buffer.from("--x\r\n");
      for (let count = 0; count < 100; count++) yield Buffer.alloc(1000, "a");
    };
    await expect(read(endless(), "x")).rejects.toMatchObject({ status: 400 });
  });
});
