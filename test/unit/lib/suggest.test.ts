import { describe, expect, it } from "vitest";
import { editDistance, suggest } from "../../../src/lib/suggest.js";

const tools = ["shell", "shell_command", "exec_command", "read_file"];

describe("suggest", () => {
  it.each([
    ["shel", "shell"],
    ["SHELL", "shell"],
    ["raed_file", "read_file"],
    ["exec_comand", "exec_command"],
  ])("%s was meant to be %s", (word, meant) => {
    expect(suggest(word, tools)).toBe(meant);
  });

  it("suggests nothing when nothing is near", () => {
    expect(suggest("banana", tools)).toBeNull();
    expect(suggest("x", [])).toBeNull();
  });
});

describe("editDistance", () => {
  it.each([
    ["", "", 0],
    ["", "abc", 3],
    ["abc", "abc", 0],
    ["abc", "acb", 1],
    ["kitten", "sitting", 3],
  ])("from %j to %j takes %d slips", (from, to, slips) => {
    expect(editDistance(from, to)).toBe(slips);
    expect(editDistance(to, from)).toBe(slips);
  });
});
