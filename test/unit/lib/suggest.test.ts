import { describe, expect, it } from "vitest";
import { suggest } from "../../../src/lib/suggest.js";

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

describe("the slips of a word", () => {
  it.each([
    ["a letter more", "abcd", "abc"],
    ["a letter less", "ab", "abc"],
    ["the only letter less", "", "a"],
    ["another letter", "axc", "abc"],
    ["two letters swapped", "acb", "abc"],
    ["two of seven letters", "mittens", "sittins"],
    ["three of eleven letters", "kitten-with", "sitting-with"],
  ])("may be %s", (_slips, word, meant) => {
    expect(suggest(word, [meant])).toBe(meant);
    if (word !== "") expect(suggest(meant, [word])).toBe(word);
  });

  it.each([
    ["abc", ""],
    ["", "abc"],
    ["abc", "cab"],
    ["kitten", "sitting"],
  ])("are too many from %j to %j", (word, candidate) => {
    expect(suggest(word, [candidate])).toBeNull();
  });

  it("are as few as possible, whatever comes first", () => {
    expect(suggest("abc", ["acb", "abc", "abd"])).toBe("abc");
  });
});
