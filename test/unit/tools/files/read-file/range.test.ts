import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { createToolRegistry } from "../../../../../src/tools/registry.js";
import { runs } from "../../../../support/fuzz.js";
import { MemorySandbox } from "../../../../support/memory-sandbox.js";

const directory = mkdtempSync(join(tmpdir(), "brig-read-file-"));
const tools = createToolRegistry(new MemorySandbox(), { cwd: directory });

afterAll(() => {
  rmSync(directory, { recursive: true });
});

function file(content: string | Uint8Array): string {
  const path = join(directory, "file");
  writeFileSync(path, content);
  return path;
}

async function read(content: string | Uint8Array, args: object = {}): Promise<string> {
  return (await tools.get("read_file").execute({ file_path: file(content), ...args })).content;
}

const numbered = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, index) => `L${from + index}: ${from + index}`).join("\n");
const lines = (count: number) => Array.from({ length: count }, (_, index) => `${index + 1}\n`).join("");

describe("read_file of a range", () => {
  it.each([
    ["a line with its end", "one\n", "L1: one"],
    ["a line without its end", "one", "L1: one"],
    ["an empty last line only if it has an end", "one\n\n", "L1: one\nL2: "],
    ["CR LF as an end", "one\r\ntwo\r\n", "L1: one\nL2: two"],
    ["a CR that nothing follows as text", "one\r", "L1: one\r"],
    ["a CR inside a line as text", "a\rb\n", "L1: a\rb"],
    ["only one CR before the LF as the end", "a\r\r\n", "L1: a\r"],
    ["a byte order mark as text", "\ufeffx\n", "L1: \ufeffx"],
    ["escape bytes as they are", "\x1b[31mred\n", "L1: \x1b[31mred"],
    ["NUL as it is", "a\0b\n", "L1: a\0b"],
  ])("takes %s", async (_, content, expected) => {
    expect(await read(content)).toBe(expected);
  });

  it.each([
    [[0x61, 0xff, 0x62], "a\ufffdb"],
    [[0xe2, 0x82], "\ufffd"],
    [[0xf0, 0x9f, 0x98, 0x41], "\ufffdA"],
    [[0xed, 0xa0, 0x80], "\ufffd\ufffd\ufffd"],
  ])("replaces what is no UTF-8 in %j", async (bytes, expected) => {
    expect(await read(Buffer.from(bytes))).toBe(`L1: ${expected}`);
  });

  it.each([
    ["500 bytes stay", "x".repeat(500), "x".repeat(500)],
    ["501 are cut to 500", "x".repeat(501), "x".repeat(500)],
    ["a character that does not fit is left out", `${"x".repeat(499)}é!`, "x".repeat(499)],
    ["one that just fits stays", `${"x".repeat(498)}é!`, `${"x".repeat(498)}é`],
    ["four bytes that do not fit are left out", `${"x".repeat(497)}😀`, "x".repeat(497)],
    ["a megabyte is cut as well", "é".repeat(524_288), "é".repeat(250)],
  ])("cuts lines by bytes: %s", async (_, line, expected) => {
    expect(await read(`${line}\nnext\n`)).toBe(`L1: ${expected}\nL2: next`);
  });

  it("counts what it replaces by the bytes it becomes", async () => {
    expect(await read(Buffer.alloc(300, 0xff))).toBe(`L1: ${"\ufffd".repeat(166)}`);
  });

  it.each([
    [{}, numbered(1, 2000)],
    [{ offset: 2500 }, numbered(2500, 3000)],
    [{ offset: 3000, limit: 5 }, "L3000: 3000"],
    [{ offset: 7, limit: 2 }, numbered(7, 8)],
  ])("gives of 3000 lines those that %j names", async (args, expected) => {
    expect(await read(lines(3000), args)).toBe(expected);
  });

  it.each([
    [{ offset: 0 }, "offset must be a 1-indexed line number"],
    [{ limit: 0 }, "limit must be greater than zero"],
    [{ offset: 0, limit: 0, file_path: "x" }, "offset must be a 1-indexed line number"],
    [{ limit: 0, file_path: "x" }, "limit must be greater than zero"],
    [{ file_path: "x" }, "file_path must be an absolute path"],
    [{ offset: 4 }, "offset exceeds file length"],
    [{ file_path: "/proc/nowhere/at/all" }, "failed to read file: No such file or directory (os error 2)"],
    [{ file_path: "/etc/passwd/x" }, "failed to read file: Not a directory (os error 20)"],
    [{ file_path: "/tmp" }, "failed to read file: Is a directory (os error 21)"],
    [{ file_path: "/a\0b" }, "failed to read file: file name contained an unexpected NUL byte"],
    [
      { file_path: "/dev/zero" },
      "failed to read file: cannot read /dev/zero: it is not a regular file but a char-device",
    ],
  ])("answers %j with its text", async (args, text) => {
    const output = await tools.get("read_file").execute({ file_path: file("1\n2\n3"), ...args });
    expect(output).toEqual({ content: text, success: false });
  });

  it("says of an empty file that no line is there", async () => {
    expect(await read("")).toBe("offset exceeds file length");
  });

  it.each([{ offset: -1 }, { limit: 1.5 }, { mode: "outline" }, { indentation: { anchor_line: "3" } }])(
    "refuses %j as arguments it cannot parse",
    async (args) => {
      await expect(
        tools.get("read_file" as string).execute({ file_path: file("x"), ...args }),
      ).rejects.toMatchObject({
        code: "tool.invalid-input",
        message: expect.stringMatching(/^failed to parse function arguments: /),
      });
    },
  );

  it("does not wait for a FIFO", async () => {
    const path = join(directory, "fifo");
    execFileSync("mkfifo", [path]);
    const { content } = await tools.get("read_file").execute({ file_path: path });
    expect(content).toMatch(/^failed to read file: .* not a regular file but a fifo$/);
  });

  it("gives up on a sparse terabyte, and says what can be read", async () => {
    const path = file("text\n");
    truncateSync(path, 2 ** 40);
    const readSome = async (args: object) =>
      (await tools.get("read_file").execute({ file_path: path, ...args })).content;
    expect(await readSome({})).toBe(
      "failed to read file: line 2 is longer than 64 MiB; lower the limit to end with it",
    );
    expect(await readSome({ limit: 1 })).toBe("L1: text");
    expect(await readSome({ limit: 2 })).toBe(`L1: text\nL2: ${"\0".repeat(500)}`);
    truncateSync(path, 0);
  });

  it("refuses to answer with more than it holds in memory", async () => {
    const path = file(`${"x".repeat(499)}\n`.repeat(40_000));
    const call = (limit: number) => tools.get("read_file").execute({ file_path: path, limit });
    const text =
      /^failed to read file: the lines asked for are more than 16777216 characters; the first (\d+) of them are not$/;
    const fitting = Number(text.exec((await call(1_000_000)).content)?.[1]);
    expect(fitting).toBeGreaterThan(33_000);
    expect((await call(fitting)).content.split("\n")).toHaveLength(fitting);
  });

  it("reads no further than it has to", async () => {
    const sandbox = new MemorySandbox();
    let bytesRead = 0;
    const files: MemorySandbox["files"] = {
      ...sandbox.files,
      async readPastHole(path, options) {
        const part = await sandbox.files.readPastHole(path, options);
        bytesRead += part.data.length;
        return part;
      },
    };
    const counted = createToolRegistry({ spawn: sandbox.spawn.bind(sandbox), files }, { cwd: "/" });
    const path = file(lines(1_000_000));
    await counted.get("read_file").execute({ file_path: path, limit: 200 });
    expect(bytesRead).toBe(60 * 1024);
  });

  it("shows a hole of a sparse file as the zeros it stands for", async () => {
    const sandbox = new MemorySandbox();
    /** Every run of zeros is a hole. */
    const files: MemorySandbox["files"] = {
      ...sandbox.files,
      async readPastHole(path, { offsetBytes, lengthBytes }) {
        const bytes = await sandbox.files.read(path, { offsetBytes: 0, lengthBytes: 2 ** 30 });
        const behind = bytes.subarray(offsetBytes).findIndex((byte) => byte !== 0);
        const holeBytes = behind < 0 ? bytes.length - offsetBytes : behind;
        const start = offsetBytes + holeBytes;
        return { holeBytes, data: bytes.subarray(start, start + lengthBytes) };
      },
    };
    const sparse = createToolRegistry({ spawn: sandbox.spawn.bind(sandbox), files }, { cwd: "/" });
    const piece = fc.constantFrom(
      "\n",
      "text\n",
      "text",
      "\0",
      "\0".repeat(4096),
      "\0".repeat(300_000),
      "x".repeat(4095),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(piece, { minLength: 1, maxLength: 12 }),
        fc.integer({ min: 1, max: 6 }),
        fc.integer({ min: 1, max: 6 }),
        async (pieces, offset, limit) => {
          const args = { file_path: file(pieces.join("")), offset, limit };
          const [holed, plain] = [sparse, tools].map((of) => of.get("read_file").execute(args));
          expect(await holed).toEqual(await plain);
        },
      ),
      { numRuns: runs({ short: 40, deep: 1000 }) },
    );
  });

  it("agrees with splitting the whole text, wherever the pieces of the file end", async () => {
    const piece = fc.oneof(
      fc.constantFrom(
        "\n",
        "\r\n",
        "\r",
        "x".repeat(4095),
        "x".repeat(4096),
        "x".repeat(65_535),
        "x".repeat(65_536),
        "y".repeat(1_048_576),
      ),
      fc.string({ unit: "binary", maxLength: 40 }),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(piece, { minLength: 1, maxLength: 30 }),
        fc.integer({ min: 1, max: 12 }),
        fc.integer({ min: 1, max: 12 }),
        async (pieces, offset, limit) => {
          const bytes = Buffer.from(pieces.join(""));
          expect(await read(bytes, { offset, limit })).toBe(slowRange(bytes, offset, limit));
        },
      ),
      { numRuns: runs({ short: 30, deep: 600 }) },
    );
  });
});

describe("readFile", () => {
  it("takes paths from a directory, and numbers its lines as read_file does", async () => {
    file("one\ntwo\n");
    const options = { filePath: "file", offset: 2 };
    expect(await tools.get("readFile").execute(options)).toEqual({ content: "L2: two", success: true });
    const elsewhere = { ...options, filePath: "../file", workdir: "below" };
    await expect(tools.get("readFile").execute(elsewhere)).rejects.toMatchObject({ code: "file.not-found" });
  });

  it.each([
    [{ filePath: "missing" }, "file.not-found"],
    [{ filePath: "." }, "file.is-directory"],
    [{ filePath: "file", offset: 99 }, "tool.invalid-input"],
    [{ filePath: "file", limit: 0 }, "tool.invalid-input"],
    [{}, "tool.invalid-input"],
  ])("fails with %j by a typed error", async (args, code) => {
    file("one\n");
    await expect(tools.get("readFile" as string).execute(args)).rejects.toMatchObject({ code });
  });

  it("reads the block around a line", async () => {
    file("a\n b\n  c\nd\n");
    const { content } = await tools
      .get("readFile")
      .execute({ filePath: "file", mode: "indentation", anchorLine: 3, maxLines: 2 });
    expect(content).toBe("L2:  b\nL3:   c");
  });
});

/** Latin-1, so that one character is one byte until a line is decoded. */
function slowRange(bytes: Buffer, offset: number, limit: number): string {
  const all = bytes.toString("latin1").match(/[^\n]*\n|[^\n]+$/g) ?? [];
  const page = all.slice(offset - 1, offset - 1 + limit);
  if (page.length === 0) return "offset exceeds file length";
  return page
    .map((line, index) => `L${offset + index}: ${firstBytes(line.replace(/\r?\n$/, ""), 500)}`)
    .join("\n");
}

function firstBytes(latin1: string, maxBytes: number): string {
  const chars = [...Buffer.from(latin1, "latin1").toString("utf8")];
  let text = "";
  for (const char of chars) {
    if (Buffer.byteLength(text + char) > maxBytes) return text;
    text += char;
  }
  return text;
}
