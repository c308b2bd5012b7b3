import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { markdownLines, messageText } from "../../../../../src/cli/conversation/screen/markdown-lines.js";
import { piecesOf } from "../../../../../src/cli/conversation/screen/message-pieces.js";
import { displayWidth } from "../../../../../src/lib/terminal/display-width.js";
import { markdownText } from "../../../../support/markdown.js";

/** What is read where there are no colours. */
function read(text: string, columns = 40): string[] {
  return messageText(text, { columns, usesColour: false }).split("\n").slice(0, -1);
}

/** The tones of the words of a line. */
function tones(text: string): [string, string][] {
  const [line = []] = markdownLines(text, 80);
  return line.filter((each) => each.text.trim() !== "").map(({ text, tone }) => [text.trim(), tone]);
}

describe("Markdown", () => {
  it.each<[string, string, string[]]>([
    ["a heading", "# Title\ntext", ["Title", "text"]],
    ["a heading with a line below it", "Title\n===\n\ntext", ["Title", "", "text"]],
    ["lines of a paragraph", "one\ntwo\n\nthree", ["one", "two", "", "three"]],
    ["emphasis, code and struck text", "a **b** *c* `d` ~~e~~", ["a b c `d` ~~e~~"]],
    [
      "signs that stand for themselves",
      "2 * 3 * 4 and snake_case_name \\*x\\*",
      ["2 * 3 * 4 and snake_case_name *x*"],
    ],
    ["a link", "see [the page](https://x.test/a) now", ["see the page (https://x.test/a) now"]],
    ["an address", "<https://x.test/a> or https://x.test/b", ["https://x.test/a or https://x.test/b"]],
    ["a link with its address as the text", "[https://x.test/](https://x.test/)", ["https://x.test/"]],
    [
      "a link to another address than its text",
      "[https://a.test](https://b.test)",
      ["https://a.test (https://b.test)"],
    ],
    ["an address that would run a script", "[x](javascript:alert)", ["[x](javascript:alert)"]],
    [
      "a definition of a link, which is text",
      "[x][1]\n\n[1]: https://x.test",
      ["[x][1]", "", "[1]: https://x.test"],
    ],
    ["a picture", "![a dog](dog.png)", ["picture a dog (dog.png)"]],
    ["a list", "- one\n- two\n  - three\n    more", ["- one", "- two", "  - three", "    more"]],
    ["a list with air", "- one\n\n- two", ["- one", "", "- two"]],
    ["numbers", "9. nine\n10. ten\n    - in it", ["9. nine", "10. ten", "    - in it"]],
    ["tasks", "- [ ] open\n- [x] done\n- [link](a)", ["□ open", "✔ done", "- link (a)"]],
    ["an item that is too long", "- one two three four", ["- one two", "  three four"]],
    ["an item without text", "-\n- x", ["-", "- x"]],
    [
      "code in an item",
      "1. run\n   ```sh\n   ls  -l\n\n   cd\n   ```\n2. done",
      ["1. run", "     ls  -l", "", "     cd", "2. done"],
    ],
    ["a quote", "> one\n> two\n>\n> > three", ["│ one", "│ two", "│", "│ │ three"]],
    [
      "code",
      "so:\n```ts\nconst x = 1;\n\n\tif (x) {}\n```\nend",
      ["so:", "", "  const x = 1;", "", "      if (x) {}", "", "end"],
    ],
    ["code that is indented", "so:\n\n    x  = 1\n    y", ["so:", "", "  x  = 1", "  y"]],
    ["code that nobody ended", "```\nx\n\n", ["  x"]],
    ["a fence in code", "````\n```\n````", ["  ```"]],
    ["code between tildes", "~~~\n```\n~~~", ["  ```"]],
    ["a rule", "a\n\n***\n\nb", ["a", "", "────────────────────────────────────────", "", "b"]],
    ["tags, which are text", "<b>bold</b>\n\n<script>x</script>", ["<b>bold</b>", "", "<script>x</script>"]],
    ["characters by their names", "&lt;a&gt; &amp; &#36;", ["<a> & $"]],
    ["wide characters", "- 日本語です", ["- 日本語です"]],
  ])("lays out %s", (_what, text, rows) => {
    const columns = text.includes("three four") ? 12 : 40;
    expect(read(text, text.includes("http") ? 80 : columns)).toEqual(rows);
  });

  it("never breaks code between words, and loses no space of it", () => {
    expect(read("```\nab  cd  ef\n```", 8)).toEqual(["  ab  cd", "    ef"]);
  });

  it("wraps between words, whatever tone they have", () => {
    expect(read("**bold words** and *some* `code of it` at last", 12)).toEqual([
      "bold words",
      "and some",
      "`code of it`",
      "at last",
    ]);
  });

  it("gives text the tone of what it is", () => {
    expect(tones("## T *e* `c`")).toEqual([
      ["T", "strong"],
      ["e", "strong"],
      ["`c`", "accent"],
    ]);
    expect(tones("**b *x*** *e* ~~s~~ [l](u)")).toEqual([
      ["b", "strong"],
      ["x", "strong"],
      ["e", "emphasis"],
      ["~~", "quiet"],
      ["s", "quiet"],
      ["~~", "quiet"],
      ["l", "plain"],
      ["(u)", "quiet"],
    ]);
  });
});

describe("a table", () => {
  const table = "| name | size | what it is |\n|:--|--:|:-:|\n| a | 10 | the first |\n| bb | 2 | `x` |";

  it("has columns as wide as they must be", () => {
    expect(read(table)).toEqual([
      "name │ size │ what it is",
      "─────┼──────┼───────────",
      "a    │   10 │ the first",
      "bb   │    2 │    `x`",
    ]);
  });

  it("wraps cells where it is too wide, with a rule between the rows", () => {
    expect(read(table.replace("the first", "the very first of all of them"), 31)).toEqual([
      "name │ size │    what it is",
      "─────┼──────┼──────────────────",
      "a    │   10 │ the very first of",
      "     │      │    all of them",
      "─────┼──────┼──────────────────",
      "bb   │    2 │        `x`",
    ]);
  });

  it("is a list of names and values where there is no room for columns", () => {
    expect(read(table.replace("the first", "the first of them"), 17)).toEqual([
      "name: a",
      "size: 10",
      "what it is: the",
      "first of them",
      "",
      "name: bb",
      "size: 2",
      "what it is: `x`",
    ]);
  });

  it("has a cell for each column", () => {
    expect(read("| a | b |\n|---|---|\n| 1 |\n| 1 | 2 |")).toEqual(["a │ b", "──┼──", "1 │", "1 │ 2"]);
  });
});

const anyText = fc.oneof(markdownText, fc.string({ unit: "grapheme", maxLength: 300 }));

describe("whatever a model says", () => {
  it("stays within the columns, and no word of it is lost", () => {
    fc.assert(
      fc.property(anyText, fc.integer({ min: 12, max: 60 }), (text, columns) => {
        const rows = read(text, columns);
        for (const row of rows) expect(displayWidth(row)).toBeLessThanOrEqual(columns);
        const shown = rows.join("").replaceAll(/\s/g, "");
        for (const word of text.match(/bold|slanted|struck|word|another/g) ?? [])
          expect(shown).toContain(word);
      }),
    );
  });

  it("is shown as it is written where a row of a table has more cells than there are columns", () => {
    expect(read("| one |\n| --- |\n| a | more |")).toEqual(["| one |", "| --- |", "| a | more |"]);
    expect(read("| one |\n| --- |\n| a \\| b |").join("\n")).toContain("a | b");
  });

  it("has no control sequence, not even by the name of a character", () => {
    const evil = "a&#27;[2J &#x202e; &#9; `\x1b]0;t\x07` [l\x9b2J](https://x&#27;y) ```\n\x1b[2J\n";
    const all = messageText(`${evil}\n\n\`\`\`\n${evil}\n\`\`\`\n\n| ${evil} |\n|--|\n| ${evil} |`, {
      columns: 60,
      usesColour: false,
    });
    expect(all).not.toMatch(/(?!\n)[\p{Cc}\p{Bidi_Control}]/u);
    expect(all).toContain("<U+202E>");
    for (const row of read("&#x202e;".repeat(20), 40)) expect(displayWidth(row)).toBeLessThanOrEqual(40);
  });

  it("is shown as it is where it is nested too deep, and nothing of it is left out", () => {
    const deep = `${"> ".repeat(200)}the end`;
    expect(read(deep).join(" ")).toMatch(/^> > > .*the end$/);
    const list = Array.from({ length: 60 }, (_, depth) => `${"  ".repeat(depth)}- item${depth}`).join("\n");
    const shown = read(list, 50).join("\n");
    for (let depth = 0; depth < 60; depth++) expect(shown).toContain(`item${depth}`);
    const narrow = read(list.split("\n").slice(0, 15).join("\n"), 20);
    expect(narrow.slice(0, 2)).toEqual(["- item0", "  - item1"]);
    for (let depth = 0; depth < 15; depth++) expect(narrow.join("\n")).toContain(`item${depth}`);
    for (const row of narrow) expect(displayWidth(row)).toBeLessThanOrEqual(20);
  });

  it.each([
    ["brackets", "["],
    ["links that nobody ends", "[a](b"],
    ["pictures in pictures", "![[]()"],
    ["emphasis that nobody ends", "*a "],
    ["emphasis of two kinds", "*a_ "],
    ["backticks", "`a``b"],
    ["angles", "<"],
    ["escapes", "\\`"],
    ["quotes", "> "],
    ["items", "- "],
    ["lines of items", "- a\n"],
    ["items in items", "- - a\n"],
    ["columns", "|a"],
    ["lines", "a\n"],
    ["blank lines", "\n"],
    ["fences", "```\n"],
    ["spaces", " "],
    ["one word", "a"],
  ])("is shown to its end, also if it is made of nothing but %s", (_what, part) => {
    const text = part.repeat(Math.ceil(50_000 / part.length));
    expect(read(`begin ${text} end`, 80).join("\n")).toMatch(/^begin.*end$/s);
  });

  it("is parsed in short pieces, and after a megabyte not at all, so that no message takes long", () => {
    const pieces = piecesOf(`${"[".repeat(300_000)}\n${"- a\n".repeat(400_000)}`);
    const parsed = pieces.filter(({ kind }) => kind === "markdown");
    expect(Math.max(...parsed.map(({ text }) => text.length))).toBeLessThanOrEqual(16_384);
    const parsedLength = parsed.reduce((sum, { text }) => sum + text.length, 0);
    expect(parsedLength).toBeGreaterThan(1_000_000);
    expect(parsedLength).toBeLessThan(1_100_000);
    expect(pieces.at(-1)?.kind).toBe("text");
  });

  it("may be a message of ten megabytes", () => {
    const text =
      `word **bold** \`code\` and [a link](https://x.test)\n\n- item\n\n\`\`\`\ncode\n\`\`\`\n`.repeat(
        140_000,
      );
    expect(text.length).toBeGreaterThan(10_000_000);
    expect(read(text, 80).length).toBe(140_000 * 6 - 1);
  }, 120_000);
});
