import fc from "fast-check";

const inline = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        "**bold**",
        "*slanted*",
        "`code it`",
        "~~struck~~",
        "[text](https://x.test/path)",
        "&amp;",
      ),
      fc.constantFrom("word", "another", "日本語", "*", "_", "`", "[", "]", "<b>", "\\", "two  spaces", "|"),
    ),
    { minLength: 1, maxLength: 8 },
  )
  .map((parts) => parts.join(" "));

const line = fc
  .tuple(
    fc.constantFrom("", "", "", "  ", "    ", "\t"),
    fc.constantFrom("", "", "", "- ", "* ", "1. ", "12) ", "> ", "# ", "- [ ] ", "| "),
    inline,
  )
  .map((parts) => parts.join(""));

const block = fc.oneof(
  { weight: 4, arbitrary: fc.array(line, { minLength: 1, maxLength: 4 }).map((lines) => lines.join("\n")) },
  fc
    .tuple(
      fc.constantFrom("", "", "  ", "   "),
      fc.constantFrom("```", "~~~", "```sh"),
      fc.array(line, { maxLength: 4 }),
    )
    .map(([indent, fence, lines]) =>
      [indent + fence, ...lines.map((each) => indent + each), indent + fence.slice(0, 3)].join("\n"),
    ),
  fc.array(inline, { minLength: 1, maxLength: 3 }).map((cells) => {
    const row = `| ${cells.map((cell) => cell.replaceAll("|", "")).join(" | ")} |`;
    return [row, row.replaceAll(/[^|]+/g, " --- "), row].join("\n");
  }),
  fc.constantFrom("---", "***", "```", "~~~~", "a\n===", ""),
);

/** Texts as models write them, and texts that only look like them. */
export const markdownText = fc
  .array(fc.tuple(block, fc.constantFrom("\n", "\n\n", "\n\n", "\n\n\n")), { maxLength: 8 })
  .map((parts) => parts.flat().join(""));
