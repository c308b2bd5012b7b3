import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { rgPath } from "@vscode/ripgrep";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import type { ToolOf } from "../../../../src/tools/catalogue.js";
import type { FileSearchResult } from "../../../../src/tools/files/file-search.js";
import { createToolRegistry } from "../../../../src/tools/registry.js";
import type { ToolSandbox } from "../../../../src/tools/tool-sandbox.js";
import { MemorySandbox } from "../../../support/memory-sandbox.js";

const base = mkdtempSync(join(tmpdir(), "brig-grep-"));
const root = join(base, "tree");
const programs = join(base, "programs");
const memory = new MemorySandbox({ PATH: [programs, dirname(rgPath), "/usr/bin", "/bin"].join(delimiter) });
const tools = createToolRegistry(memory, { cwd: root });

beforeEach(() => {
  rmSync(base, { recursive: true, force: true });
  mkdirSync(join(root, "src"), { recursive: true });
  mkdirSync(programs);
  ["old.ts", "src/newer.ts", "src/newest.js", "other.txt"].forEach((name, age) => {
    write(name, name === "other.txt" ? "nothing\n" : "needle in here\n");
    utimesSync(join(root, name), 1_700_000_000 + age, 1_700_000_000 + age);
  });
});

afterAll(() => {
  rmSync(base, { recursive: true });
});

function write(name: string, content: string): void {
  writeFileSync(join(root, name), content);
}

/** Puts a program named rg before the real one. */
function fakeRipgrep(script: string): void {
  writeFileSync(join(programs, "rg"), `#!/bin/sh\n${script}\n`);
  chmodSync(join(programs, "rg"), 0o755);
}

const grep = (args: object) => tools.get("grep_files" as string).execute(args);
const paths = (...names: string[]) => names.map((name) => join(root, name)).join("\n");

describe("grep_files", () => {
  it("lists the files that match, the last modified first", async () => {
    const content = paths("src/newest.js", "src/newer.ts", "old.ts");
    expect(await grep({ pattern: "needle" })).toEqual({ content, success: true });
  });

  it.each([
    [{ pattern: "needle", include: "*.ts" }, ["src/newer.ts", "old.ts"]],
    [{ pattern: "needle", include: "  *.{js,txt} " }, ["src/newest.js"]],
    [{ pattern: "needle", include: "  " }, ["src/newest.js", "src/newer.ts", "old.ts"]],
    [{ pattern: "needle", path: "src" }, ["src/newest.js", "src/newer.ts"]],
    [{ pattern: "needle", path: "./src/" }, ["src/newest.js", "src/newer.ts"]],
    [{ pattern: "needle", path: join(root, "old.ts") }, ["old.ts"]],
    [{ pattern: "needle", limit: 1 }, ["src/newest.js"]],
    [{ pattern: " \t^need.e in\u3000" }, ["src/newest.js", "src/newer.ts", "old.ts"]],
  ])("narrows by %j", async (args, names) => {
    expect((await grep(args)).content).toBe(paths(...names));
  });

  it("takes a pattern that looks like an option as a pattern", async () => {
    write("dash.txt", "--files\n");
    expect((await grep({ pattern: "--files" })).content).toBe(paths("dash.txt"));
  });

  it("says that nothing was found", async () => {
    expect(await grep({ pattern: "absent" })).toEqual({ content: "No matches found.", success: false });
  });

  it.each([
    [{ pattern: "  \n" }, "pattern must not be empty"],
    [{ pattern: "", limit: 0 }, "pattern must not be empty"],
    [{ pattern: "x", limit: 0 }, "limit must be greater than zero"],
    [
      { pattern: "x", path: "missing" },
      `unable to access \`${root}/missing\`: No such file or directory (os error 2)`,
    ],
    [{ pattern: "x", path: "/a\0b" }, "unable to access `/a\0b`: file name contained an unexpected NUL byte"],
  ])("answers %j with its text", async (args, text) => {
    expect(await grep(args)).toEqual({ content: text, success: false });
  });

  it.each([
    [{ pattern: "(" }, /^rg failed: .*unclosed group/s],
    [{ pattern: "x", include: "[" }, /^rg failed: .*unclosed character class/s],
  ])("tells what rg says of %j", async (args, text) => {
    const { content, success } = await grep(args);
    expect(content).toMatch(text);
    expect(success).toBe(false);
  });

  it("returns 100 paths unless told otherwise, and 2000 at most", async () => {
    fakeRipgrep("seq -f /found/%g 3000");
    const count = async (args: object) => (await grep({ pattern: "x", ...args })).content.split("\n").length;
    expect(await count({})).toBe(100);
    expect(await count({ limit: 2500 })).toBe(2000);
  });

  it("passes over names that are not UTF-8, and lines without end", async () => {
    fakeRipgrep(`printf '/a\\n/bad\\377\\n\\n/b\\n'; head -c 300000 /dev/zero; printf '\\n/c'`);
    expect((await grep({ pattern: "x" })).content).toBe("/a\n/b\n/c");
  });

  it("gives what was found beside a file that may not be read", async () => {
    fakeRipgrep("echo /found; exit 2");
    expect((await grep({ pattern: "x" })).content).toBe("/found");
    fakeRipgrep("exit 2");
    expect((await grep({ pattern: "x" })).content).toBe("No matches found.");
  });

  it("ends after 30 seconds", async () => {
    fakeRipgrep("sleep 60");
    const timeouts: (number | undefined)[] = [];
    const hasty: ToolSandbox = {
      files: memory.files,
      spawn(argv, options) {
        timeouts.push(options?.timeoutMs);
        return memory.spawn(argv, { ...options, timeoutMs: 50 });
      },
    };
    const { content } = await createToolRegistry(hasty, { cwd: root })
      .get("grep_files")
      .execute({ pattern: "x" });
    expect(content).toBe("rg timed out after 30 seconds");
    expect(new Set(timeouts)).toEqual(new Set([30_000]));
  });

  it("uses the toolbox's rg, else the one on PATH, and says so where there is neither", async () => {
    const started: string[] = [];
    const bare: ToolSandbox = {
      files: memory.files,
      spawn([program = "", ...args], options) {
        started.push(program);
        const isThere = program !== "/.brig/rg" || started.length > 1;
        return memory.spawn([isThere ? rgPath : "/proc/nonexistent/rg", ...args], options);
      },
    };
    const search = () =>
      createToolRegistry(bare, { cwd: root }).get("grep_files").execute({ pattern: "needle", limit: 1 });
    expect((await search()).content).toBe(paths("src/newest.js"));
    expect(started).toEqual(["/.brig/rg", "rg"]);
    expect((await search()).content).toBe(paths("src/newest.js"));
    expect(started.slice(2)).toEqual(["/.brig/rg"]);

    const without = {
      ...bare,
      spawn: (_: unknown, options: object) => memory.spawn(["/proc/nonexistent"], options),
    };
    const { content } = await createToolRegistry(without, { cwd: root })
      .get("grep_files")
      .execute({ pattern: "needle" });
    expect(content).toMatch(/^failed to launch rg: .*\. Ensure ripgrep is installed and on PATH\.$/);
  });

  it("stops when its signal is aborted", async () => {
    fakeRipgrep("sleep 60");
    const stop = new AbortController();
    const call = tools.get("grep_files").execute({ pattern: "x" }, { signal: stop.signal });
    setTimeout(() => stop.abort(new Error("enough")), 50);
    await expect(call).rejects.toThrow("enough");
  });
});

describe("grepFiles", () => {
  it("answers as grep_files does, and fails by typed errors", async () => {
    const call = (args: Parameters<ToolOf<"grepFiles">["execute"]>[0]) =>
      tools.get("grepFiles").execute(args);
    expect(await call({ pattern: "needle", include: "*.js" })).toEqual({
      content: paths("src/newest.js"),
      success: true,
    });
    expect(await call({ pattern: "absent" })).toEqual({ content: "No matches found.", success: false });
    await expect(call({ pattern: "x", path: "missing" })).rejects.toMatchObject({ code: "file.not-found" });
    await expect(call({ pattern: "(" })).rejects.toMatchObject({ code: "tool.failed" });
    await expect(call({ pattern: " " })).rejects.toMatchObject({ code: "tool.invalid-input" });
  });
});

describe("fileSearch", () => {
  const search = (args: object) =>
    tools.get("fileSearch" as string).execute(args) as Promise<FileSearchResult>;

  it("finds files by characters of their path in order, the best match first", async () => {
    const found = await search({ pattern: "newest" });
    expect(found).toMatchObject({
      matches: [{ path: "src/newest.js", indices: [4, 5, 6, 7, 8, 9], score: expect.any(Number) }],
      totalMatchCount: 1,
      success: true,
    });
    const loose = await search({ pattern: "sne" });
    expect(loose.matches.map(({ path }) => path)).toEqual(["src/newer.ts", "src/newest.js"]);
    expect(loose.matches.every(({ score }) => score > 0 && score <= 1)).toBe(true);
  });

  it("counts all matches, and returns as many as the limit", async () => {
    for (let index = 0; index < 70; index++) write(`many-${index}`, "");
    const found = (args: object) => search({ pattern: "many", ...args });
    expect(await found({})).toMatchObject({ matches: { length: 64 }, totalMatchCount: 70 });
    expect(await found({ limit: 3 })).toMatchObject({ matches: { length: 3 }, totalMatchCount: 70 });
  });

  it.each([
    [{ pattern: "ts", exclude: ["src/**"] }, ["old.ts"]],
    [{ pattern: "ts", exclude: ["old*", "*.js", "*.txt"] }, ["src/newer.ts"]],
    [{ pattern: "newer", searchDirectory: "src" }, ["newer.ts"]],
    [{ pattern: "zzz" }, []],
  ])("with %j finds %j", async (args, expected) => {
    const { content, success } = await search(args);
    expect(content).toBe(expected.join("\n"));
    expect(success).toBe(expected.length > 0);
  });

  it("takes hidden files and odd names, but nothing of .git", async () => {
    mkdirSync(join(root, ".git"));
    write(".git/odd", "");
    write(".odd", "");
    write("odd\nname", "");
    symlinkSync("nowhere", join(root, "odd-link"));
    const { matches } = await search({ pattern: "odd" });
    expect(matches.map(({ path }) => path).sort()).toEqual([".odd", "odd\nname"]);
  });

  it.each([
    [{ pattern: " " }, "tool.invalid-input"],
    [{ pattern: "x", limit: 0 }, "tool.invalid-input"],
    [{ pattern: "x", searchDirectory: "missing" }, "file.not-found"],
    [{ pattern: "x", searchDirectory: "old.ts" }, "file.not-directory"],
    [{ pattern: "x", exclude: ["["] }, "tool.failed"],
    [{}, "tool.invalid-input"],
  ])("fails with %j by a typed error", async (args, code) => {
    await expect(search(args)).rejects.toMatchObject({ code });
  });
});
