import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { appendFile, mkdir, symlink, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { SandboxMode } from "../../src/sandbox/policy/modes.js";
import { createToolRegistry, type ToolRegistry } from "../../src/tools/registry.js";
import { heldDuring } from "../support/garbage.js";
import { treeDigest } from "../support/host-tree.js";
import { blackPng, jpegPicture } from "../support/pictures.js";
import {
  openTestSandbox,
  type TemporaryDirectory,
  type TestSandbox,
  temporaryDirectory,
} from "../support/sandbox.js";

const LOG_LINES = 1_000_000;
const CROWD = 200_000;
const MIB = 1024 * 1024;

/** Names for a few files: as many inodes would take a busy disk long. */
const makeCrowd = `import os
for n in range(${CROWD}):
  name, first = f"{n + 1:06d}", f"{n - n % 50_000 + 1:06d}"
  if name == first: os.mknod(name)
  else: os.link(first, name)`;

const onePixel = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

let directory: TemporaryDirectory;
/** What every mode looks at. */
let tree: string;
let log: string;
let crowd: string;

beforeAll(async () => {
  directory = await temporaryDirectory();
  tree = join(directory.path, "tree");
  log = join(directory.path, "log");
  crowd = join(directory.path, "crowd");
  await mkdir(join(tree, "src"), { recursive: true });
  await writeFile(join(tree, "src/main.py"), "def main():\n    if True:\n        run()\n    end()\n");
  await writeFile(join(tree, "empty"), "");
  await writeFile(join(tree, "unended"), "no end");
  await writeFile(join(tree, "latin1"), Buffer.from("caf\xe9\n", "latin1"));
  await writeFile(join(tree, "pixel"), onePixel);
  await writeFile(join(tree, "wide"), jpegPicture({ width: 4096, height: 64 }));
  await writeFile(join(tree, "bomb"), blackPng({ width: 30_000, height: 30_000 }));
  await writeFile(join(tree, "sparse"), "start\n");
  await truncate(join(tree, "sparse"), 2 ** 40);
  await writeFile(join(tree, "hole"), "");
  await truncate(join(tree, "hole"), 60 * MIB);
  await appendFile(join(tree, "hole"), "\nafter\n");
  await symlink("/etc/os-release", join(tree, "out"));
  await symlink("/", join(tree, "root"));
  await mkdir(Buffer.concat([Buffer.from(`${tree}/odd\n\x1b[1m`), Buffer.of(0xff)]));
  await writeFile(
    Buffer.concat([Buffer.from(`${tree}/odd\n\x1b[1m`), Buffer.of(0xff), Buffer.from("/in")]),
    "",
  );
  execFileSync("mkfifo", [join(tree, "fifo")]);
  await writeLog(log);
  await mkdir(crowd);
  execFileSync("python3", ["-c", makeCrowd], { cwd: crowd });
}, 120_000);

afterAll(async () => {
  await directory[Symbol.asyncDispose]();
});

describe.each<SandboxMode>(["read-only", "workspace-write", "danger-full-access"])("under %s", (mode) => {
  let opened: TestSandbox;
  let tools: ToolRegistry;

  beforeAll(async () => {
    opened = await openTestSandbox({ workspace: directory.path, mode });
    tools = createToolRegistry(opened.sandbox, { cwd: tree });
  });

  afterAll(async () => {
    await tools.close();
    await opened[Symbol.asyncDispose]();
  });

  const call = async (name: string, args: object) => (await tools.get(name).execute(args)).content;
  const read = (name: string, args: object = {}) =>
    call("read_file", { file_path: name.startsWith("/") ? name : join(tree, name), ...args });

  it.each([
    ["src/main.py", { offset: 2, limit: 2 }, "L2:     if True:\nL3:         run()"],
    ["src/../unended", {}, "L1: no end"],
    ["latin1", {}, "L1: caf\ufffd"],
    ["empty", {}, "offset exceeds file length"],
    ["sparse", { limit: 1 }, "L1: start"],
    ["sparse", {}, "failed to read file: line 2 is longer than 64 MiB; lower the limit to end with it"],
    ["sparse", { offset: 2, limit: 1 }, `L2: ${"\0".repeat(500)}`],
    [
      "sparse",
      { offset: 900_000 },
      "failed to read file: line 2 is longer than 64 MiB; lower the limit to end with it",
    ],
    [
      "sparse",
      { mode: "indentation", offset: 7 },
      "failed to read file: line 2 is longer than 64 MiB; lower the limit to end with it",
    ],
    ["hole", { offset: 2 }, "L2: after"],
    ["hole", { limit: 1 }, `L1: ${"\0".repeat(500)}`],
    ["missing", {}, "failed to read file: No such file or directory (os error 2)"],
    ["src", {}, "failed to read file: Is a directory (os error 21)"],
    ["empty/below", {}, "failed to read file: Not a directory (os error 20)"],
    ["x".repeat(300), {}, "failed to read file: Filename too long (os error 36)"],
    ["a\0b", {}, "failed to read file: file name contained an unexpected NUL byte"],
    [
      "/dev/null",
      {},
      "failed to read file: cannot read /dev/null: it is not a regular file but a char-device",
    ],
  ])("read_file answers for %j with %j", async (name, args, expected) => {
    expect(await read(name, args)).toBe(expected);
  });

  it("read_file finds the block around a line", async () => {
    const args = { mode: "indentation", indentation: { anchor_line: 3, max_levels: 1 } };
    expect(await read("src/main.py", args)).toBe("L2:     if True:\nL3:         run()\nL4:     end()");
  });

  it("read_file and view_image do not wait for a FIFO", async () => {
    expect(await read("fifo")).toBe(
      `failed to read file: cannot read ${tree}/fifo: it is not a regular file but a char-device`,
    );
    expect(await call("view_image", { path: "fifo" })).toBe(`image path \`${tree}/fifo\` is not a file`);
  });

  it("read_file follows a link as the sandbox sees it, not as the host does", async () => {
    expect(await read("out")).toBe(await read("/etc/os-release"));
    const hostOnly = join(directory.path, "..", "brig-not-mounted");
    expect(await read(hostOnly)).toBe("failed to read file: No such file or directory (os error 2)");
  });

  it("read_file takes a link to / for the sandbox's own", async () => {
    expect(await read("root/etc/passwd")).toBe(await read("/etc/passwd"));
  });

  it("list_dir shows the tree by bytes, entering no link", async () => {
    expect(await call("list_dir", { dir_path: tree })).toBe(
      [
        `Absolute path: ${tree}`,
        "bomb",
        "empty",
        "fifo?",
        "hole",
        "latin1",
        "odd\n\x1b[1m\ufffd/",
        "  in",
        "out@",
        "pixel",
        "root@",
        "sparse",
        "src/",
        "  main.py",
        "unended",
        "wide",
      ].join("\n"),
    );
  });

  it.each([
    ["missing", "failed to read directory: No such file or directory (os error 2)"],
    ["empty", "failed to read directory: Not a directory (os error 20)"],
  ])("list_dir answers for %s with its text", async (name, text) => {
    expect(await call("list_dir", { dir_path: join(tree, name) })).toBe(text);
  });

  it("grep_files finds files, and says what rg says", async () => {
    expect(await call("grep_files", { pattern: "run\\(", include: "*.py" })).toBe(`${tree}/src/main.py`);
    expect(await call("grep_files", { pattern: "absent", path: "src" })).toBe("No matches found.");
    expect(await call("grep_files", { pattern: "(", path: "src" })).toMatch(/^rg failed: .*unclosed group/s);
    expect(await call("grep_files", { pattern: "x", path: "nowhere" })).toBe(
      `unable to access \`${tree}/nowhere\`: No such file or directory (os error 2)`,
    );
  });

  it("grep_files needs no rg of the image", async () => {
    const bare = createToolRegistry(opened.sandbox, { cwd: tree, environment: { PATH: "/nowhere" } });
    expect((await bare.get("grep_files").execute({ pattern: "run", path: "src" })).content).toBe(
      `${tree}/src/main.py`,
    );
    await bare.close();
  });

  it("fileSearch, readFile, listDir, grepFiles and exec serve a program", async () => {
    expect(await tools.get("fileSearch").execute({ pattern: "mainpy" })).toMatchObject({
      matches: [{ path: "src/main.py", indices: [4, 5, 6, 7, 9, 10] }],
      totalMatchCount: 1,
    });
    expect(await tools.get("readFile").execute({ filePath: "unended" })).toMatchObject({
      content: "L1: no end",
    });
    await expect(tools.get("listDir").execute({ path: "missing" })).rejects.toMatchObject({
      code: "file.not-found",
    });
    expect(await tools.get("grepFiles").execute({ pattern: "absent" })).toMatchObject({ success: false });
    expect(await tools.get("exec").execute({ command: ["cat", "unended"] })).toMatchObject({
      exitCode: 0,
      stdout: { text: "no end" },
    });
  });

  it("view_image shows a picture", async () => {
    expect(await tools.get("view_image").execute({ path: "pixel" })).toMatchObject({
      content: `image/png, 1×1, ${onePixel.length} B`,
      parts: [{ image_url: `data:image/png;base64,${onePixel.toString("base64")}` }],
    });
    expect(await call("view_image", { path: "wide" })).toMatch(/shown as image\/jpeg, 2048×32, /);
    expect(await call("view_image", { path: "bomb" })).toMatch(/it is 30000×30000 pixels, and more than /);
  });

  it("looks from many calls at once", async () => {
    const texts = await Promise.all(
      Array.from({ length: 50 }, (_, index) => read(log, { offset: index * 3 + 1, limit: 1 })),
    );
    expect(texts).toEqual(texts.map((_, index) => `L${index * 3 + 1}: ${logLine(index * 3 + 1)}`));
  });

  it("changes nothing", async () => {
    const source = join(tree, "src");
    const before = await treeDigest(source);
    await call("read_file", { file_path: join(source, "main.py") });
    await call("list_dir", { dir_path: source });
    await call("grep_files", { pattern: "x", path: source });
    expect(await treeDigest(source)).toBe(before);
  });
});

describe("what is too large to hold", () => {
  let opened: TestSandbox;
  let tools: ToolRegistry;

  beforeAll(async () => {
    opened = await openTestSandbox({ workspace: directory.path });
    tools = createToolRegistry(opened.sandbox, { cwd: directory.path });
  });

  afterAll(async () => {
    await tools.close();
    await opened[Symbol.asyncDispose]();
  });

  const call = async (name: string, args: object) => (await tools.get(name).execute(args)).content;

  it("read_file reaches line 900 000 of a log of 200 MB without holding it", async () => {
    const held = await heldDuring(async () => {
      expect(await call("read_file", { file_path: log, offset: 900_000, limit: 1 })).toBe(
        `L900000: ${logLine(900_000)}`,
      );
      const around = { mode: "indentation", offset: 900_000, indentation: { max_lines: 3 } };
      expect((await call("read_file", { file_path: log, ...around })).split("\n")).toHaveLength(3);
    });
    expect(held).toBeLessThan(32 * MIB);
  });

  it("list_dir finds a page in a directory of 200 000 entries", async () => {
    const held = await heldDuring(async () => {
      expect(await call("list_dir", { dir_path: crowd, offset: 100_000, limit: 2 })).toBe(
        `Absolute path: ${crowd}\n100000\n100001\nMore than 2 entries found`,
      );
      expect(await call("list_dir", { dir_path: crowd, limit: 1 })).toBe(
        `Absolute path: ${crowd}\n000001\nMore than 1 entries found`,
      );
    });
    expect(held).toBeLessThan(100 * MIB);
  });
});

describe("what the sandbox's user may not read", () => {
  it("is refused with the kernel's words", async () => {
    await using opened = await openTestSandbox();
    await opened.sandbox.exec([
      "sh",
      "-c",
      "mkdir -p /tmp/w/closed && echo x > /tmp/w/secret && chmod 0 /tmp/w/*",
    ]);
    const tools = createToolRegistry(opened.sandbox, { cwd: "/tmp/w" });
    const call = async (name: string, args: object) => (await tools.get(name).execute(args)).content;
    expect(await call("read_file", { file_path: "/tmp/w/secret" })).toBe(
      "failed to read file: Permission denied (os error 13)",
    );
    expect(await call("list_dir", { dir_path: "/tmp/w", depth: 1 })).toBe(
      "Absolute path: /tmp/w\nclosed/\nsecret",
    );
    expect(await call("list_dir", { dir_path: "/tmp/w" })).toBe(
      "failed to read directory: Permission denied (os error 13)",
    );
    expect(await call("grep_files", { pattern: "x" })).toBe("No matches found.");
    await tools.close();
  });
});

function logLine(number: number): string {
  return `line ${number} ${"x".repeat(190)}`;
}

async function writeLog(path: string): Promise<void> {
  const stream = createWriteStream(path);
  for (let from = 1; from <= LOG_LINES; from += 10_000) {
    const lines = Array.from({ length: 10_000 }, (_, index) => `${logLine(from + index)}\n`).join("");
    if (!stream.write(lines)) await once(stream, "drain");
  }
  await new Promise<void>((resolve, reject) => stream.on("error", reject).end(() => resolve()));
}
