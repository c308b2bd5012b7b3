import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { createToolRegistry } from "../../../../../src/tools/registry.js";
import { runs } from "../../../../support/fuzz.js";
import { MemorySandbox } from "../../../../support/memory-sandbox.js";

const directory = mkdtempSync(join(tmpdir(), "brig-read-block-"));
const tools = createToolRegistry(new MemorySandbox(), { cwd: directory });

afterAll(() => {
  rmSync(directory, { recursive: true });
});

interface Block {
  anchor_line?: number;
  max_levels?: number;
  include_siblings?: boolean;
  include_header?: boolean;
  max_lines?: number;
}

async function read(text: string, args: { offset?: number; limit?: number; indentation?: Block }) {
  const path = join(directory, "file");
  writeFileSync(path, text);
  return (await tools.get("read_file").execute({ file_path: path, mode: "indentation", ...args })).content;
}

async function numbersOf(text: string, args: Parameters<typeof read>[1]): Promise<number[]> {
  const content = await read(text, args);
  return content === "" ? [] : content.split("\n").map((line) => Number(/^L(\d+): /.exec(line)?.[1]));
}

const nested = `fn outer() {
    if cond {
        inner();
    }
    tail();
}
`;

const twoSiblings = `fn outer() {
    if a {
        first();
    }
    if b {
        second();
    }
}
`;

const documented = `import x

# about the class
# in two lines
class A:

    # about f
    def f(self):
        return 1

    def g(self):
        return 2
`;

describe("read_file of a block", () => {
  it.each<[string, string, Block & { limit?: number }, number[]]>([
    ["one level out", nested, { anchor_line: 3, max_levels: 1 }, [2, 3, 4]],
    ["out to column 0 with 0 levels", nested, { anchor_line: 3 }, [1, 2, 3, 4, 5, 6]],
    ["no further than column 0", nested, { anchor_line: 3, max_levels: 99 }, [1, 2, 3, 4, 5, 6]],
    ["siblings left out", twoSiblings, { anchor_line: 3, max_levels: 1 }, [2, 3, 4]],
    [
      "siblings on request",
      twoSiblings,
      { anchor_line: 3, max_levels: 1, include_siblings: true },
      [2, 3, 4, 5, 6, 7],
    ],
    ["nothing but the anchor with room for one", nested, { anchor_line: 3, max_lines: 1 }, [3]],
    ["the line above first", nested, { anchor_line: 3, max_lines: 2 }, [2, 3]],
    ["above and below in turn", nested, { anchor_line: 3, max_lines: 4 }, [1, 2, 3, 4]],
    ["the smaller of two limits", nested, { anchor_line: 3, max_lines: 4, limit: 3 }, [2, 3, 4]],
    [
      "comments above the header, and the next header below",
      documented,
      { anchor_line: 9, max_levels: 1 },
      [7, 8, 9, 10, 11, 12],
    ],
    [
      "no comments above without the header",
      documented,
      { anchor_line: 9, max_levels: 1, include_header: false },
      [8, 9, 10, 11, 12],
    ],
    [
      "a blank line as the one line at the floor, before the real header",
      documented,
      { anchor_line: 8, max_levels: 1 },
      [7, 8, 9, 10, 11, 12],
    ],
    ["tabs as four columns", "a\n\tb\n\t\tc\n\t\td\n", { anchor_line: 3, max_levels: 1 }, [2, 3, 4]],
    ["no blank ends", "\n\nx\n\n\n", { anchor_line: 3, include_siblings: true }, [3]],
    ["a blank anchor alone in its file", "\n", {}, [1]],
    ["nothing of a file of blank lines", "\n \n\n", { anchor_line: 2 }, []],
    [
      "Unicode's white space as blank",
      "x\n\u3000\u0085\n\u00a0\n",
      { anchor_line: 1, include_siblings: true },
      [1],
    ],
    ["a byte order mark as not blank", "x\n\ufeff\n", { anchor_line: 1, include_siblings: true }, [1, 2]],
  ])("takes %s", async (_, text, { limit, ...indentation }, expected) => {
    expect(await numbersOf(text, { ...(limit && { limit }), indentation })).toEqual(expected);
  });

  it("starts at the offset unless told of an anchor", async () => {
    expect(await numbersOf(nested, { offset: 3, indentation: { max_levels: 1 } })).toEqual([2, 3, 4]);
  });

  it.each([
    [{ indentation: { anchor_line: 0 } }, "anchor_line must be a 1-indexed line number"],
    [{ indentation: { max_lines: 0 } }, "max_lines must be greater than zero"],
    [{ indentation: { anchor_line: 0, max_lines: 0 } }, "anchor_line must be a 1-indexed line number"],
    [{ indentation: { anchor_line: 7 } }, "anchor_line exceeds file length"],
    [{ offset: 7 }, "anchor_line exceeds file length"],
  ])("answers %j with its text", async (args, text) => {
    expect(await read(nested, args)).toBe(text);
  });

  it("says so of an empty file", async () => {
    expect(await read("", {})).toBe("anchor_line exceeds file length");
  });

  it("cuts its lines, but measures them whole", async () => {
    const indented = `${" ".repeat(600)}deep`;
    const text = `top\n${indented}\n${indented}\nlow\n`;
    const content = await read(text, { indentation: { anchor_line: 2, max_levels: 1 } });
    expect(content).toBe(`L2: ${" ".repeat(500)}\nL3: ${" ".repeat(500)}`);
  });

  it("refuses a block of more lines than it holds in memory", async () => {
    const text = `${"x\n".repeat(30_000)}`;
    const args = { limit: 1_000_000, indentation: { anchor_line: 15_000, include_siblings: true } };
    expect(await read(text, args)).toBe(
      "failed to read file: the block around line 15000 has more than 10000 lines; ask for fewer with max_lines or max_levels",
    );
    const most = { ...args, indentation: { ...args.indentation, max_lines: 10_000 } };
    expect(await numbersOf(text, most)).toHaveLength(10_000);
  });

  it("agrees with a slow reading of the rules", async () => {
    const indent = fc.constantFrom("", " ", "  ", "    ", "\t", "\t  ", "        ");
    const body = fc.constantFrom("code();", "}", "", "# note", "// note", "-- note", "#include <x>", "@attr");
    const line = fc.tuple(indent, body).map((parts) => parts.join(""));
    const number = fc.integer({ min: 1, max: 14 });
    const block = fc.record(
      {
        anchor_line: number,
        max_levels: fc.integer({ min: 0, max: 3 }),
        include_siblings: fc.boolean(),
        include_header: fc.boolean(),
        max_lines: number,
      },
      { requiredKeys: [] },
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(line, { maxLength: 16 }),
        fc.record({ offset: number, limit: number, indentation: block }, { requiredKeys: [] }),
        fc.boolean(),
        async (lines, args, hasFinalEnd) => {
          const text = lines.join("\n") + (hasFinalEnd ? "\n" : "");
          expect(await read(text, args)).toBe(slowBlock(text, args));
        },
      ),
      { numRuns: runs({ short: 300, deep: 15_000 }) },
    );
  });
});

/** The rules one by one, on the whole file, with the list of taken lines kept in order and put back from. */
function slowBlock(
  text: string,
  { offset = 1, limit = 2000, indentation = {} }: { offset?: number; limit?: number; indentation?: Block },
): string {
  const anchorLine = indentation.anchor_line ?? offset;
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  if (anchorLine > lines.length) return "anchor_line exceeds file length";
  const effective: number[] = [];
  for (const line of lines) {
    const leading = /^[ \t]*/.exec(line)?.[0] ?? "";
    const own = leading.replaceAll("\t", "    ").length;
    effective.push(line.trim() === "" ? (effective.at(-1) ?? 0) : own);
  }
  const anchor = anchorLine - 1;
  const levels = indentation.max_levels ?? 0;
  const floor = levels === 0 ? 0 : Math.max(0, effective[anchor]! - 4 * levels);
  const cap = Math.min(limit, indentation.max_lines ?? limit, lines.length);
  const show = (at: number) => `L${at + 1}: ${lines[at]}`;
  if (cap === 1) return show(anchor);

  const taken = [anchor];
  const next = { up: anchor - 1, down: anchor + 1 };
  const floorLines = { up: 0, down: 0 };
  const isOver = { up: false, down: false };
  const step = (side: "up" | "down") => {
    const at = next[side];
    if (isOver[side] || at < 0 || at >= lines.length || effective[at]! < floor) {
      isOver[side] = true;
      return;
    }
    next[side] += side === "up" ? -1 : 1;
    if (effective[at] === floor && !(indentation.include_siblings ?? false)) {
      const isHeader =
        side === "up" && (indentation.include_header ?? true) && /^\s*(#|\/\/|--)/.test(lines[at]!);
      if (!isHeader && floorLines[side] > 0) {
        isOver[side] = true;
        return;
      }
      floorLines[side]++;
    }
    taken.push(at);
  };
  while (taken.length < cap && !(isOver.up && isOver.down)) {
    step("up");
    if (taken.length < cap) step("down");
  }
  taken.sort((one, other) => one - other);
  while (taken.length > 0 && lines[taken[0]!]!.trim() === "") taken.shift();
  while (taken.length > 0 && lines[taken.at(-1)!]!.trim() === "") taken.pop();
  return taken.map(show).join("\n");
}
