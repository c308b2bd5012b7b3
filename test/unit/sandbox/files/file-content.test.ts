import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { FrameType } from "../../../../src/sandbox/channel/protocol.js";
import { fileContent } from "../../../../src/sandbox/files/file-reads.js";
import type { ContentPiece } from "../../../../src/sandbox/files/file-request.js";
import { extent, playedFiles, readResult } from "../channel/played-files.js";

async function all(source: AsyncIterable<ContentPiece>): Promise<string> {
  let text = "";
  for await (const { offset, data } of source) {
    if (data.length > 0) expect(offset).toBe(text.length);
    text += data.toString();
  }
  return text;
}

describe("the content of a file", () => {
  it("comes in pieces, up to the length that was asked for", async () => {
    const played = await playedFiles(() => ({ output: [extent(0, "one "), extent(4, "two"), extent(7)] }));
    expect(await all(fileContent(played.context, "/p", { lengthBytes: 7 }))).toBe("one two");
    expect(played.requests).toMatchObject([{ operation: "read", length: 7n, offset: 0n, flags: 128 + 8 }]);
  });

  it("fails as the read does, also in the middle", async () => {
    const played = await playedFiles(() => ({ errno: 40, output: [extent(0, "one")] }));
    await expect(all(fileContent(played.context, "/p", { lengthBytes: 7 }))).rejects.toMatchObject({
      code: "file.symlink",
    });
  });

  it("fails with the signal's reason", async () => {
    const abort = new AbortController();
    const played = await playedFiles(() => {
      setImmediate(() => abort.abort(new Error("stop")));
      return { waitsForKill: true };
    });
    const content = fileContent(played.context, "/p", { lengthBytes: 7, signal: abort.signal });
    await expect(all(content)).rejects.toThrow("stop");
    expect(played.kills).toBe(1);
  });

  it("that nobody reads any more ends the request", async () => {
    const output = [extent(0, Buffer.alloc(1000))];
    const played = await playedFiles(() => ({ output, waitsForKill: true }));
    for await (const { data } of fileContent(played.context, "/p", { lengthBytes: 7000 })) {
      expect(data.length).toBe(1000);
      break;
    }
    expect(played.kills).toBe(1);
  });

  it("is not asked for before somebody reads it, so a failure cannot come too early", async () => {
    const played = await playedFiles(() => ({ errno: 2 }));
    const content = fileContent(played.context, "/p", { lengthBytes: 7 });
    await played.context.link.ping();
    expect(played.requests).toEqual([]);
    await expect(all(content)).rejects.toMatchObject({ code: "file.not-found" });
  });

  it("that fails while its reader is busy fails at the next piece", async () => {
    const ends = new AbortController();
    const until = once(ends.signal, "abort");
    const played = await playedFiles(() => ({ errno: 5, output: [extent(0, "one")], until }));
    const content = fileContent(played.context, "/p", { lengthBytes: 7 });
    expect((await content.next()).value?.data.toString()).toBe("one");
    ends.abort();
    await until;
    await played.context.link.ping();
    await expect(content.next()).rejects.toMatchObject({ errno: "EIO" });
  });

  it("waits for its reader, who gets all of it", async () => {
    const ends = new AbortController();
    const until = once(ends.signal, "abort");
    const pieces = Array.from({ length: 4 }, (_, at) => extent(at * 60_000, Buffer.alloc(60_000, "x")));
    const output = [...pieces, extent(240_000)];
    const played = await playedFiles(() => ({ result: readResult(), output, until }));
    const content = fileContent(played.context, "/p", { lengthBytes: 240_000 });
    const first = (await content.next()).value?.data.toString() ?? "";
    const credits = () => played.runner.frames.filter(({ type }) => type === FrameType.credit).length;
    await played.context.link.ping();
    // More is granted only for what was taken.
    expect(credits()).toBe(0);
    let length = first.length;
    const taken = (async () => {
      for await (const { data } of content) length += data.length;
    })();
    await expect.poll(credits).toBeGreaterThan(0);
    ends.abort();
    await taken;
    expect(length).toBe(240_000);
  });

  it("has no pieces where it has holes, and ends with its size", async () => {
    const bytes = Buffer.concat([extent(5, "ab"), extent(2 ** 40, "c"), extent(2 ** 41)]);
    for (const size of [1, 7, bytes.length]) {
      const output = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
        bytes.subarray(at * size, (at + 1) * size),
      );
      const played = await playedFiles(() => ({ output }));
      const found = new Map<number, string>();
      for await (const { offset, data } of fileContent(played.context, "/p", { lengthBytes: 2 ** 41 }))
        for (const [at, byte] of [...data.toString()].entries()) found.set(offset + at, byte);
      expect([...found]).toEqual([
        [5, "a"],
        [6, "b"],
        [2 ** 40, "c"],
      ]);
    }
  });

  it.each<[string, Buffer[]]>([
    ["is cut off", [extent(0, "one")]],
    ["is cut off in a head", [extent(0, "one").subarray(0, 5)]],
    ["goes on behind its end", [extent(0), extent(1, "x")]],
    ["goes back", [extent(0, "one"), extent(1, "x"), extent(9)]],
    ["is larger than any", [extent(2 ** 53, "one")]],
  ])("that %s is none", async (_name, output) => {
    const played = await playedFiles(() => ({ output }));
    await expect(all(fileContent(played.context, "/p", { lengthBytes: 7 }))).rejects.toMatchObject({
      code: "protocol.invalid",
    });
  });
});
