import { describe, expect, it } from "vitest";
import {
  composerWith,
  emptyComposer,
  reduceComposer,
} from "../../../../../src/cli/conversation/input/composer.js";
import {
  draftOf,
  insertPaste,
  sentText,
  shownText,
} from "../../../../../src/cli/conversation/input/draft.js";
import type { Key, KeyName } from "../../../../../src/cli/conversation/input/keys.js";

const history = ["first", "second\nof two lines", "third"].map(draftOf);

/** Text is typed, and names of keys in <> are pressed. */
function compose(input: string, from = emptyComposer) {
  const keys = input.match(/<[a-z-]+>|[^<]+/gs) ?? [];
  return keys.map(keyOf).reduce((composer, key) => reduceComposer(composer, key, history), from);
}

function keyOf(word: string): Key {
  return word.startsWith("<")
    ? { kind: "key", name: word.slice(1, -1) as KeyName }
    : { kind: "text", text: word };
}

/** The draft with a bar where the cursor stands. */
function draftAfter(input: string, from = emptyComposer): string {
  const { text, cursor } = compose(input, from).draft;
  return `${text.slice(0, cursor)}|${text.slice(cursor)}`;
}

describe("a draft", () => {
  it.each([
    ["typed and moved in", "helo<left>l<line-end>!", "hello!|"],
    ["by words", "one two-three<word-left><word-left>x", "one xtwo-three"],
    ["whole characters", "a👩‍👩‍👧e\u0301<backspace><backspace>", "a|"],
    ["forwards", "abc<line-start><delete>", "|bc"],
    ["a word at a time", "one two  <delete-word-left>", "one |"],
    ["to the end and back", "one two<line-start><delete-to-end>x<yank>", "xone two|"],
    ["to the start", "one two<word-left><delete-to-start>", "|two"],
    ["over lines", "one<newline>two<up><line-start>x<down><line-end>y", "xone\ntwoy|"],
    ["a backslash before Enter is a new line", "one\\<enter>two", "one\ntwo|"],
    ["the column is kept as far as the line goes", "long line<newline>ab<up>x", "lox|ng line\nab"],
  ])("is edited: %s", (_, input, expected) => {
    const draft = draftAfter(input);
    expect(expected.includes("|") ? draft : draft.replace("|", "")).toBe(expected);
  });

  it("takes a paste as it is, and keys of control as nothing", () => {
    const pasted = reduceComposer(
      composerWith(draftOf("a")),
      { kind: "paste", text: "x\n/quit\n", isCut: false },
      [],
    );
    expect(pasted.draft.text).toBe("ax\n/quit\n");
    expect(draftAfter("a<escape><unfold><end-of-input><interrupt>")).toBe("a|");
  });
});

describe("earlier messages", () => {
  it("come back with up, and the draft with down", () => {
    expect(draftAfter("new<up>")).toBe("third|");
    expect(draftAfter("new<up><up>")).toBe("second\nof two lines|");
    expect(draftAfter("new<up><up><up><up><up>")).toBe("first|");
    expect(draftAfter("new<up><up><up><up><down>")).toBe("second\nof two lines|");
    expect(draftAfter("new<up><down>")).toBe("new|");
    expect(draftAfter("new<down>")).toBe("new|");
  });

  it("are searched with ctrl-R, older and older, and taken with Enter", () => {
    expect(draftAfter("new<search>S")).toBe("second\nof two lines|");
    expect(draftAfter("new<search>ir")).toBe("third|");
    expect(draftAfter("new<search>ir<search>")).toBe("first|");
    expect(draftAfter("new<search>ir<search><search>")).toBe("first|");
    expect(draftAfter("new<search>irx")).toBe("new|");
    expect(draftAfter("new<search>irx<backspace>")).toBe("third|");
    expect(draftAfter("new<search>ir<escape>")).toBe("new|");
    const taken = compose("new<search>ir<enter>");
    expect(taken).toMatchObject({ search: null, draft: { text: "third" } });
  });
});

describe("a folded paste", () => {
  const long = "line\n".repeat(300);
  const pasted = () => composerWith(insertPaste(draftOf("see "), long));
  const shown = (input: string) => {
    const { draft } = compose(input, pasted());
    return shownText({
      ...draft,
      text: `${draft.text.slice(0, draft.cursor)}|${draft.text.slice(draft.cursor)}`,
    });
  };

  it.each([
    ["<backspace>", "see |"],
    ["<left>x", "see x|[300 lines pasted]"],
    ["<left><right>x", "see [300 lines pasted]x|"],
    ["<left><delete>", "see |"],
    ["<word-left>", "see |[300 lines pasted]"],
    ["<word-left><word-left>", "|see [300 lines pasted]"],
    ["<line-start><word-right><word-right>", "see [300 lines pasted]|"],
    [" so<delete-word-left><delete-word-left>", "see |"],
    [" so<delete-word-left><delete-word-left><yank><yank>", "see [300 lines pasted] [300 lines pasted] |"],
    ["<delete-to-start><yank>", "see [300 lines pasted]|"],
  ])("is one thing for the keys %s", (input, expected) => {
    expect(shown(input)).toBe(expected);
  });

  it("comes back with all that it stands for", () => {
    const earlier = [insertPaste(draftOf("earlier "), long)];
    const recalled = reduceComposer(emptyComposer, { kind: "key", name: "up" }, earlier);
    expect(shownText(recalled.draft)).toBe("earlier [300 lines pasted]");
    expect(sentText(recalled.draft)).toBe(`earlier ${long}`);
    const found = [..."line\nli"].reduce(
      (composer, text) => reduceComposer(composer, { kind: "text", text }, earlier),
      reduceComposer(emptyComposer, { kind: "key", name: "search" }, earlier),
    );
    expect(shownText(found.draft)).toBe("earlier [300 lines pasted]");
  });
});
