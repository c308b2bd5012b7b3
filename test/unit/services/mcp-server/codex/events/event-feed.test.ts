import { describe, expect, it } from "vitest";
import { EventFeed } from "../../../../../../src/services/mcp-server/codex/events/event-feed.js";

function slowClient() {
  const taken: string[] = [];
  let read: () => void = () => undefined;
  const feed = new EventFeed(async (method) => {
    await new Promise<void>((resolve) => {
      read = resolve;
    });
    taken.push(method);
  });
  return { feed, taken, read: () => read() };
}

describe("the feed of a call", () => {
  it("sends one after the other, and is flushed when all are sent", async () => {
    const { feed, taken, read } = slowClient();
    for (const method of ["a", "b", "c"]) feed.push(method, {});
    let isFlushed = false;
    const flushed = feed.flush().then(() => {
      isFlushed = true;
    });
    for (const expected of [["a"], ["a", "b"]]) {
      read();
      await new Promise((resolve) => setImmediate(resolve));
      expect(taken).toEqual(expected);
      expect(isFlushed).toBe(false);
    }
    read();
    await flushed;
    expect(taken).toEqual(["a", "b", "c"]);
    feed.push("d", {});
    read();
    await feed.flush();
    expect(taken).toEqual(["a", "b", "c", "d"]);
  });

  it("leaves out pieces that the client does not take in time, and then everything", async () => {
    const { feed, taken, read } = slowClient();
    const text = "x".repeat(1024 * 1024);
    for (let i = 0; i < 10; i++) feed.push("piece", { text }, { isPiece: true });
    for (let i = 0; i < 100; i++) feed.push("whole", { text });
    const done = feed.flush();
    const reading = setInterval(read, 0);
    await done;
    clearInterval(reading);
    const count = (method: string) => taken.filter((one) => one === method).length;
    expect(count("piece")).toBe(3);
    expect(count("whole")).toBe(60);
  });

  it("goes on when the client is gone", async () => {
    const sent: string[] = [];
    const feed = new EventFeed(async (method) => {
      sent.push(method);
      throw new Error("gone");
    });
    feed.push("a", {});
    feed.push("b", {});
    await feed.flush();
    expect(sent).toEqual(["a", "b"]);
  });
});
