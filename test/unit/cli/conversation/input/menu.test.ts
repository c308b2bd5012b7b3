import { describe, expect, it } from "vitest";
import { draftOf, insertPaste } from "../../../../../src/cli/conversation/input/draft.js";
import {
  argumentOffer,
  commandOffer,
  menuOf,
  moveSelection,
  withChoice,
  wordAtCursor,
} from "../../../../../src/cli/conversation/input/menu.js";

/** A draft whose cursor is at the bar. */
function at(text: string) {
  return { ...draftOf(text.replace("|", "")), cursor: text.indexOf("|") };
}

describe("the word before the cursor", () => {
  it.each([
    ["/|", { kind: "command", from: 0, to: 1, typed: "" }],
    ["/st|", { kind: "command", from: 0, to: 3, typed: "st" }],
    ["  /st|atus", { kind: "command", from: 2, to: 9, typed: "st" }],
    ["/mode |", { kind: "argument", from: 6, to: 6, typed: "" }],
    ["/mode read|-only", { kind: "argument", from: 6, to: 15, typed: "read" }],
    ["/network allow exa|", { kind: "argument", from: 9, to: 18, typed: "allow exa" }],
    ["@|", { kind: "file", from: 0, to: 1, typed: "" }],
    ["see @src/ma|in.ts now", { kind: "file", from: 4, to: 16, typed: "src/ma" }],
    ["a line\n@x|", { kind: "file", from: 7, to: 9, typed: "x" }],
    ["/apply @x|", { kind: "file", from: 7, to: 9, typed: "x" }],
  ])("of %j is something to choose for", (text, word) => {
    expect(wordAtCursor(at(text))).toMatchObject(word);
  });

  it.each([
    "|",
    "|/st",
    "/etc/ho|",
    "not /st|",
    "/status |",
    "me@example|",
    "@done |",
    "@a@b|",
    "/st\nx|",
    "/nothing x|",
  ])("of %j is nothing to choose for", (text) => {
    expect(wordAtCursor(at(text))).toBeNull();
  });

  it("may follow an element", () => {
    const draft = insertPaste(draftOf(""), "x".repeat(2000));
    const typed = { ...draft, text: `${draft.text}@f`, cursor: 3 };
    expect(wordAtCursor(typed)).toMatchObject({ kind: "file", from: 1, typed: "f" });
    expect(wordAtCursor({ ...typed, text: `/st${draft.text}`, cursor: 3 })).toBeNull();
  });
});

describe("a menu", () => {
  const labels = (typed: string) => commandOffer(typed).choices.map(({ label }) => label.split(" ")[0]);

  it("has the commands that begin with what is typed, the whole name first", () => {
    expect(labels("")).toContain("/help");
    expect(labels("st")).toEqual(["/status"]);
    expect(labels("STATUS")).toEqual(["/status"]);
    expect(labels("xyz")).toEqual([]);
  });

  it("sends a command at once only if it needs no argument", () => {
    const isWhole = (typed: string) => commandOffer(typed).choices[0]?.isWhole;
    expect([isWhole("status"), isWhole("network"), isWhole("mode")]).toEqual([true, true, false]);
  });

  it("neutralises what comes from elsewhere", () => {
    const { choices } = argumentOffer("g", [
      { value: "gpt\x1b[2J\u202e", summary: "a\nb" },
      { value: "other" },
    ]);
    expect(choices).toEqual([
      { text: "gpt\x1b[2J\u202e", label: "gpt<U+202E>", summary: "a␊b", isWhole: true },
    ]);
  });

  it("has nothing chosen for an argument of which nothing is typed", () => {
    const word = wordAtCursor(at("/mode |"));
    const offer = argumentOffer("", [{ value: "one" }, { value: "two" }]);
    const menu = word && menuOf(word, offer);
    expect(menu?.selected).toBeNull();
    expect(menu && moveSelection(menu, 1).selected).toBe(0);
    expect(menu && moveSelection(menu, -1).selected).toBe(1);
    expect(menu && moveSelection(moveSelection(menu, -1), 1).selected).toBe(0);
  });

  it("puts what is chosen in place of the whole word", () => {
    const chosen = (text: string, choice: string) => {
      const draft = at(text);
      const word = wordAtCursor(draft);
      if (word === null) throw new Error("no word");
      const done = withChoice(draft, word, { text: choice, label: "", summary: "", isWhole: false });
      return `${done.text.slice(0, done.cursor)}|${done.text.slice(done.cursor)}`;
    };
    expect(chosen("see @ma|in now", '"my file.ts" ')).toBe('see "my file.ts" |now');
    expect(chosen("/mo|", "/mode ")).toBe("/mode |");
    expect(chosen("see @x|\nthen", "x.ts ")).toBe("see x.ts |\nthen");
  });
});
