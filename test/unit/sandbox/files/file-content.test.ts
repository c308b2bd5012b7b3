import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { FrameType } from "../../../../src/sandbox/channel/protocol.js";
import { fileContent } from "../../../../src/sandbox/files/file-content.js";
import { playedFiles, readResult } from "../channel/played-files.js";

async function all(source: AsyncIterable<Buffer>): Promise<string> {
  let text = "";
  for await (const piece of source) text += piece.toString();
  return text;
}

describe("the content of a file", () => {
  it("comes in pieces, up to the length that was asked for", async () => {
    const played = await playedFiles(() => ({ output: [Buffer.from("one "), Buffer.from("two")] }));
    expect(await all(fileContent(played.context, "/p", { lengthBytes: 7 }))).toBe("one two");
    expect(played.requests).toMatchObject([{ operation: "read", length: 7n, offset: 0n, flags: 128 }]);
  });

  it("fails as the read does, also in the middle", async () => {
    const played = await playedFiles(() => ({ errno: 40, output: [Buffer.from("one")] }));
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
    const played = await playedFiles(() => ({ output: [Buffer.alloc(1000)], waitsForKill: true }));
    const content = fileContent(played.context, "/p", { lengthBytes: 7000 });
    await expect.poll(() => played.requests.length).toBe(1);
    content.destroy();
    await once(content, "close");
    await expect.poll(() => played.kills).toBe(1);
  });

  it("waits for its reader, who gets all of it", async () => {
    const ends = new AbortController();
    const until = once(ends.signal, "abort");
    const output = Array.from({ length: 4 }, () => Buffer.alloc(60_000, "x"));
    const played = await playedFiles(() => ({ result: readResult(), output, until }));
    const content = fileContent(played.context, "/p", { lengthBytes: 240_000 });
    await expect.poll(() => content.readableLength).toBeGreaterThan(0);
    const credits = () => played.runner.frames.filter(({ type }) => type === FrameType.credit).length;
    await played.context.link.ping();
    // More is granted only for what was taken.
    expect(credits()).toBe(0);
    const taken = all(content);
    await expect.poll(credits).toBeGreaterThan(0);
    ends.abort();
    expect((await taken).length).toBe(240_000);
    expect(content.listenerCount("drain")).toBe(0);
  });
});
