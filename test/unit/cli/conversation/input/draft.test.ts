import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  draftOf,
  emptyDraft,
  folded,
  insertPaste,
  insertPicture,
  insertText,
  joinedDraft,
  picturePaths,
  sentText,
  shownText,
  unfolded,
} from "../../../../../src/cli/conversation/input/draft.js";

const lines = (count: number) => "some line\n".repeat(count);
const picture = { kind: "picture", path: "/tmp/a b.png", label: "[picture a b.png 640x480]" } as const;

describe("a paste", () => {
  it.each([
    ["five lines", lines(5), lines(5)],
    ["six lines", lines(6), "[6 lines pasted]"],
    ["a thousand characters", "x".repeat(1000), "x".repeat(1000)],
    ["more characters in one line", "x".repeat(1001), "[1001 characters pasted]"],
    ["more characters in two lines", `${"x".repeat(1000)}\ny`, "[2 lines pasted]"],
  ])("of %s stands in the draft as it should, and is sent in full", (_, pasted, shown) => {
    const draft = insertPaste(draftOf("see "), pasted);
    expect(shownText(draft)).toBe(`see ${shown}`);
    expect(sentText(draft)).toBe(`see ${pasted}`);
  });

  it("has a number if it is not the first that stands there", () => {
    const two = insertPaste(insertPaste(emptyDraft, lines(300)), lines(7));
    expect(shownText(two)).toBe("[300 lines pasted][7 lines pasted #2]");
    expect(sentText(two)).toBe(lines(307));
    const three = insertPaste({ ...two, text: two.text.slice(1), cursor: 1 }, lines(8));
    expect(shownText(three)).toBe("[7 lines pasted #2][8 lines pasted #3]");
    expect(shownText(insertPaste({ ...three, text: "", cursor: 0 }, lines(9)))).toBe("[9 lines pasted]");
  });

  it("is not what somebody types, though it reads the same", () => {
    const typed = insertText(insertPaste(emptyDraft, lines(300)), " [300 lines pasted]");
    expect(sentText(typed)).toBe(`${lines(300)} [300 lines pasted]`);
  });

  it("is text where the draft has as many as there can be", () => {
    let draft = emptyDraft;
    for (let n = 0; n < 1030; n++) draft = insertPaste(draft, lines(6));
    expect(sentText(draft)).toBe(lines(6 * 1030));
    expect(shownText(draft)).toContain("[6 lines pasted #1024]some line");
  });
});

describe("a draft", () => {
  it("takes no half of a character for an element", () => {
    const halves = "a\ud800b\udc00";
    expect(sentText(draftOf(halves))).toBe("a\ufffdb\ufffd");
    const draft = insertPaste(insertPaste(emptyDraft, lines(6)), "\ud800");
    expect(sentText(draft)).toBe(`${lines(6)}\ufffd`);
    expect(sentText(insertText(insertPaste(emptyDraft, lines(6)), "𐀀"))).toBe(`${lines(6)}𐀀`);
  });

  it("has its pictures apart from its text", () => {
    const draft = insertText(insertPicture(draftOf("what is "), picture), "?");
    expect(sentText(draft)).toBe("what is [picture a b.png 640x480]?");
    expect(picturePaths(draft)).toEqual(["/tmp/a b.png"]);
    expect(picturePaths({ ...draft, text: "what is ?" })).toEqual([]);
  });

  it("is one of several, with all of their elements", () => {
    const one = insertPaste(draftOf("one "), lines(6));
    const other = insertPicture(insertPaste(draftOf("other "), lines(7)), picture);
    const joined = joinedDraft([one, emptyDraft, other]);
    expect(shownText(joined)).toBe(
      "one [6 lines pasted]\nother [7 lines pasted #2][picture a b.png 640x480]",
    );
    expect(sentText(joined)).toBe(`one ${lines(6)}\nother ${lines(7)}[picture a b.png 640x480]`);
    expect(picturePaths(joined)).toEqual([picture.path]);
  });

  it("is the same again after it was text, whatever is in it", () => {
    const piece = fc.oneof(
      fc.string({ unit: "binary", maxLength: 20 }),
      fc.integer({ min: 6, max: 9 }).map(lines),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 8 }), (pieces) => {
        const draft = pieces.reduce(
          (filled, text) =>
            text.includes("some line") ? insertPaste(filled, text) : insertText(filled, text),
          emptyDraft,
        );
        const { text, pastes } = unfolded(draft);
        expect(text).toBe(pieces.join(""));
        expect(shownText(folded(text, pastes))).toBe(shownText(draft));
      }),
    );
  });
});
