import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough, Readable } from "node:stream";
import { afterAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { readImages, readPrompt } from "../../../../src/cli/setup/run-input.js";
import type { CliContext, InputStream } from "../../../../src/command/context.js";
import { readEnvironment } from "../../../../src/lib/env.js";
import { imageSize } from "../../../../src/tools/picture/image-size.js";
import { jpegPicture } from "../../../support/pictures.js";
import { gif, jpeg, png, webp } from "../../tools/picture/pictures.js";

const folder = mkdtempSync(join(tmpdir(), "brig-input-"));

afterAll(() => {
  rmSync(folder, { recursive: true });
});

function context(input: InputStream, signal = new AbortController().signal): CliContext & { said(): string } {
  const stderr = new PassThrough();
  return {
    stdin: input,
    stdout: new PassThrough(),
    stderr,
    essentialStderr: stderr,
    cwd: folder,
    environment: readEnvironment({}),
    signal,
    interruption: () => null,
    suspend: () => undefined,
    drainFirst: () => ({ [Symbol.dispose]: () => undefined }),
    onExit: () => ({ [Symbol.dispose]: () => undefined }),
    beforeEnd: () => undefined,
    interrupt: () => undefined,
    chooseOutput: () => undefined,
    setExitStatus: () => undefined,
    said: () => String(stderr.read() ?? ""),
  };
}

function piped(...chunks: Uint8Array[]): InputStream {
  return Readable.from(chunks);
}

const terminal = (): InputStream => Object.assign(new PassThrough(), { isTTY: true });

describe("the prompt", () => {
  it("is the argument at a terminal", async () => {
    expect(await readPrompt("do it", context(terminal()))).toBe("do it");
  });

  it.each([undefined, "-"])("is standard input when the argument is %j", async (argument) => {
    expect(await readPrompt(argument, context(piped(Buffer.from("do "), Buffer.from("it\n"))))).toBe(
      "do it\n",
    );
  });

  it("is both when something is piped in beside the argument", async () => {
    expect(await readPrompt("sum up", context(piped(Buffer.from("text\n"))))).toBe(
      "sum up\n\n<stdin>\ntext\n</stdin>",
    );
    expect(await readPrompt("sum up", context(piped()))).toBe("sum up");
  });

  it.each(["", " \n"])("is not an argument without a word, as an unset variable is: %j", async (argument) => {
    for (const input of [terminal(), piped(Buffer.from("text"))])
      await expect(readPrompt(argument, context(input))).rejects.toMatchObject({
        code: "usage.invalid",
        hint: "the argument is empty; say in it what to do, or leave it out and pipe the prompt in",
      });
  });

  it("may be split within a character, and in UTF-16", async () => {
    const [first, ...rest] = Buffer.from("ü");
    expect(await readPrompt("-", context(piped(Buffer.from([first ?? 0]), Buffer.from(rest))))).toBe("ü");
    expect(await readPrompt("-", context(piped(Buffer.from("\ufeffhé", "utf16le"))))).toBe("hé");
    expect(await readPrompt("-", context(piped(Buffer.from("\ufeffhé", "utf16le").swap16())))).toBe("hé");
    expect(await readPrompt("-", context(piped(Buffer.from("\ufeffhé"))))).toBe("hé");
  });

  it.each([
    ["missing at a terminal", terminal()],
    ["empty", piped()],
    ["blank", piped(Buffer.from(" \n"))],
  ])("that is %s is refused", async (_, input) => {
    await expect(readPrompt(undefined, context(input))).rejects.toMatchObject({ code: "usage.invalid" });
  });

  it("that is not text is refused", async () => {
    await expect(readPrompt("-", context(piped(Buffer.from([0xc3, 0x28]))))).rejects.toMatchObject({
      code: "usage.invalid",
      message: "standard input is not text in UTF-8 or UTF-16",
    });
  });

  it("is not waited for after an interruption", async () => {
    await expect(readPrompt("-", context(new PassThrough(), AbortSignal.timeout(50)))).rejects.toMatchObject({
      name: "TimeoutError",
    });
  });

  it("is not waited for after an interruption that came before", async () => {
    const reason = new Error("interrupted");
    await expect(readPrompt("-", context(new PassThrough(), AbortSignal.abort(reason)))).rejects.toBe(reason);
  });

  it("says after a second that it waits for more input", async () => {
    const input = new PassThrough();
    const cli = context(input);
    setTimeout(() => input.end("late"), 1200);
    expect(await readPrompt("go", cli)).toContain("late");
    expect(cli.said()).toBe("brig: reading more from standard input\n");
  });

  it.each([
    ["go", "reading more from standard input"],
    [undefined, "reading the prompt from standard input"],
  ])("says how a wait for a pipe that nobody closes ends: %s", async (argument, awaited) => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const stop = new AbortController();
    const cli = context(new PassThrough(), stop.signal);
    const reading = readPrompt(argument, cli);
    await vi.advanceTimersByTimeAsync(4500);
    expect(cli.said()).toBe(
      `brig: ${awaited}\nbrig: still ${awaited}; it goes on when its standard input is closed, as </dev/null does\n`,
    );
    stop.abort(new Error("enough"));
    await expect(reading).rejects.toThrow("enough");
    await vi.advanceTimersByTimeAsync(60_000);
    expect(cli.said()).toBe("");
  });
});

describe("a picture", () => {
  const place = { cwd: folder, signal: new AbortController().signal };

  it.each([
    ["image/png", png(3, 4)],
    ["image/jpeg", jpeg(3, 4)],
    ["image/gif", gif(3, 4)],
    ["image/webp", webp("VP8 ", 3, 4)],
  ])("of type %s is told by its bytes, whatever its name", async (type, bytes) => {
    writeFileSync(join(folder, "picture.txt"), bytes);
    expect(await readImages(["picture.txt"], place)).toEqual([
      `data:${type};base64,${bytes.toString("base64")}`,
    ]);
  });

  it("may be one of several, separated by commas", async () => {
    writeFileSync(join(folder, "a"), gif(3, 4));
    expect(await readImages(["a,a", "a"], place)).toHaveLength(3);
  });

  it("is made to fit as view_image does", async () => {
    writeFileSync(join(folder, "wide"), jpegPicture({ width: 4096, height: 64 }));
    const [url = ""] = await readImages(["wide"], place);
    expect(url).toMatch(/^data:image\/jpeg;base64,/);
    expect(imageSize(Buffer.from(url.split(",")[1] ?? "", "base64"), "image/jpeg")).toEqual({
      width: 2048,
      height: 32,
    });
  });

  it.each([
    ["that is not there", "missing", "no such file"],
    ["that is none", "text", "is not a PNG, JPEG, GIF or WebP image"],
    ["that is a folder", ".", "cannot be read: it is a directory"],
    ["that is cut off", "cut", "cannot be used: it is cut off or broken (image/gif)"],
  ])("%s is refused", async (_, file, reason) => {
    writeFileSync(join(folder, "text"), "RIFF....WAVE");
    writeFileSync(join(folder, "cut"), "GIF89a");
    await expect(readImages([file], place)).rejects.toMatchObject({
      code: "usage.invalid",
      message: expect.stringContaining(reason),
    });
  });
});
