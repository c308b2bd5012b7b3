import { expect, it } from "vitest";
import { addBelowStages } from "../../../../../src/sandbox/images/dockerfile/dockerfile.js";

it.each([
  ["one stage", "FROM a\nRUN b", "FROM a\nNEW\nRUN b"],
  ["none", "ARG A=1\n", "ARG A=1\n"],
  [
    "several, of which one uses another",
    "from a as b\nRUN c\nFROM b\nRUN d",
    "from a as b\nNEW\nRUN c\nFROM b\nNEW\nRUN d",
  ],
  ["an empty line below, which it takes", "FROM a\n\nRUN b", "FROM a\nNEW\nRUN b"],
  ["a comment below, which it takes", "FROM a\n # why\nRUN b", "FROM a\nNEW\nRUN b"],
  ["a continued line", "FROM \\\n  a\nRUN b", "FROM \\\n  a\nNEW\nRUN b"],
  ["nothing below", "FROM a", "FROM a\nNEW"],
  ["the word in another instruction", "FROM a\n\nRUN echo \\\nFROM b", "FROM a\nNEW\nRUN echo \\\nFROM b"],
])("an instruction is added below each FROM: %s", (_, before, after) => {
  expect(addBelowStages(before, "NEW").text).toBe(after);
});

it("every line is found where it was before", () => {
  const text = "FROM a\nRUN b\nFROM c\n\nRUN d\nFROM e\nRUN f";
  const extended = addBelowStages(text, "NEW");
  const lines = extended.text.split("\n");
  for (const [index, line] of text.split("\n").entries())
    if (line !== "") expect(extended.originalLine(lines.indexOf(line) + 1)).toBe(index + 1);
});
