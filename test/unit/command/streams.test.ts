import { PassThrough, Readable, Writable } from "node:stream";
import { text } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { passInput, passOutput, readInput } from "../../../src/command/streams.js";
import { BrigError } from "../../../src/errors.js";
import { testContext } from "../../support/cli-context.js";

describe("passOutput", () => {
  it("passes any bytes to a pipe unchanged", async () => {
    const context = testContext();
    const bytes = Buffer.from([0, 0x1b, 0x5b, 0x32, 0x4a, 0xff, 0x0d, 0x07]);
    await passOutput(Readable.from([bytes.subarray(0, 3), bytes.subarray(3)]), context.stdout, context);
    expect((context.stdout as PassThrough).read()).toEqual(bytes);
  });

  it("neutralises what a terminal is shown, across the seams of pieces; colours stay", async () => {
    const context = testContext({ isTerminal: true });
    const pieces = ["\x1b[3", "1mred\x1b", "[2J", "\xe6\xbc", "\xa2"].map((piece) =>
      Buffer.from(piece, "latin1"),
    );
    await passOutput(Readable.from(pieces), context.stdout, context);
    expect(context.written().stdout).toBe("\x1b[31mred漢\x1b[0m");
  });

  it("keeps no colour where NO_COLOR forbids it", async () => {
    const context = testContext({ isTerminal: true, variables: { NO_COLOR: "1" } });
    await passOutput(Readable.from([Buffer.from("\x1b[31mred")]), context.stdout, context);
    expect(context.written().stdout).toBe("red");
  });

  it("waits for a slow reader", async () => {
    const context = testContext();
    let taken = 0;
    let longestQueue = 0;
    const slow = new Writable({
      write(_chunk, _encoding, callback) {
        taken += 1;
        setTimeout(callback, 1);
      },
    });
    async function* source() {
      for (let offered = 1; offered <= 20; offered += 1) {
        longestQueue = Math.max(longestQueue, offered - taken);
        yield Buffer.from("x");
      }
    }
    await passOutput(Readable.from(source(), { highWaterMark: 1 }), slow, context);
    expect(longestQueue).toBeLessThan(5);
    expect(taken).toBe(20);
  });

  it("ends when the reader goes away", async () => {
    const context = testContext();
    context.stdout.destroy();
    await passOutput(Readable.from([Buffer.from("x")]), context.stdout, context);
  });
});

describe("readInput", () => {
  const limits = {
    signal: new AbortController().signal,
    maxBytes: 4,
    tooLong: () => new BrigError("too long", { code: "usage.invalid" }),
  };

  it("joins the pieces, up to the limit", async () => {
    const pieces = [Buffer.from([0xff, 0]), Buffer.from("ab")];
    expect(await readInput(Readable.from(pieces), limits)).toEqual(Buffer.concat(pieces));
  });

  it("refuses one byte more", async () => {
    const pieces = [Buffer.from("abc"), Buffer.from("de")];
    await expect(readInput(Readable.from(pieces), limits)).rejects.toThrow("too long");
  });

  it("says that what could not be read is not the end", async () => {
    const stdin = new PassThrough();
    stdin.write("ab");
    const reading = readInput(stdin, limits);
    stdin.destroy(new Error("EIO"));
    await expect(reading).rejects.toMatchObject({
      code: "usage.invalid",
      message: "standard input cannot be read: EIO",
    });
  });

  it("stops waiting for input when it is interrupted", async () => {
    const controller = new AbortController();
    const reading = readInput(new PassThrough(), { ...limits, signal: controller.signal });
    controller.abort(new Error("interrupted"));
    await expect(reading).rejects.toThrow("interrupted");
  });

  it("reads nothing once it is interrupted", async () => {
    const signal = AbortSignal.abort(new Error("interrupted"));
    await expect(readInput(new PassThrough(), { ...limits, signal })).rejects.toThrow("interrupted");
  });
});

describe("passInput", () => {
  it("passes everything on and then the end", async () => {
    const to = new PassThrough();
    await passInput(Readable.from([Buffer.from("a"), Buffer.from("b")]), to);
    expect(await text(to)).toBe("ab");
  });

  it("stops when the command no longer reads", async () => {
    const from = new PassThrough();
    const to = new PassThrough();
    const passed = passInput(from, to);
    to.destroy(new Error("gone"));
    from.write("x");
    await passed;
    expect(from.destroyed).toBe(true);
  });

  it("tells of input that cannot be read", async () => {
    const from = new PassThrough();
    const passed = passInput(from, new PassThrough());
    from.destroy(new Error("EISDIR"));
    await expect(passed).rejects.toThrow("EISDIR");
  });
});
