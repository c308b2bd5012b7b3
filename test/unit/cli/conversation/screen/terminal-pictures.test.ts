import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { readPicture } from "../../../../../src/cli/conversation/screen/picture.js";
import {
  type AnswerSource,
  TerminalPictures,
} from "../../../../../src/cli/conversation/screen/terminal-pictures.js";
import { readEnvironment } from "../../../../../src/lib/env.js";
import { jpegPicture, pngPicture } from "../../../../support/pictures.js";
import { readSixels } from "../../../../support/sixels.js";

const size = { columns: 80, rows: 24 };

function pictureOf(bytes: Buffer) {
  const picture = readPicture(`data:image/png;base64,${bytes.toString("base64")}`, "x");
  if (picture === null) throw new Error("it is no picture");
  return picture;
}

const file = pngPicture({ width: 30, height: 40 });
const picture = pictureOf(file);

function open(variables: Record<string, string> = { TERM: "xterm-256color" }) {
  const keyboard: AnswerSource = { onAnswer: null };
  const asked: string[] = [];
  const changed = vi.fn();
  const pictures = new TerminalPictures({
    keyboard,
    environment: readEnvironment({ HOME: "/root", ...variables }),
    write: (text) => void asked.push(text),
    onChange: changed,
  });
  const answer = (...answers: string[]) => {
    for (const one of answers) keyboard.onAnswer?.(one);
  };
  const drawn = (one = picture) => {
    const text = pictures.drawn(one, size);
    return typeof text === "string" ? (/_G|\]1337|P0;1;0q/.exec(text)?.[0] ?? text) : text;
  };
  return { pictures, asked, changed, answer, drawn };
}

describe("a terminal that is asked whether it shows pictures", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it.each<[string, string[], string | null | undefined]>([
    ["kitty", ["_Gi=31;OK", "P>|kitty(0.42.1)", "[?62;52;c"], "_G"],
    ["Ghostty", ["_Gi=31;OK", "P>|ghostty 1.2.0", "[?62;22;52c"], "_G"],
    ["Konsole, which has sixels, too", ["_Gi=31;OK", "P>|Konsole 25.08.0", "[?62;1;4c"], "_G"],
    ["iTerm2", ["P>|iTerm2 3.6.5", "[?62;4c"], "]1337"],
    [
      "WezTerm, which has all three",
      ["_Gi=31;OK", "P>|WezTerm 20240203-110809-5046fc22", "[?65;4;6;18;22c"],
      "]1337",
    ],
    ["one without any", ["P>|XTerm(390)", "[?64;1;2;6;9;15;16;17;18;21;22;28c"], null],
    ["one that refuses", ["_Gi=31;ENOTSUPPORTED:no", "[?1;2c"], null],
    ["one of class 4", ["[?4;6c"], null],
    ["one that has been asked by another program", ["_Gi=7;OK", "[?1;2c"], null],
    ["one that names another one", ["P>|not iTerm2", "[?1;2c"], null],
    ["one that has not answered all", ["_Gi=31;OK", "P>|kitty(0.42.1)"], undefined],
  ])("is known by its answers: %s", (_, answers, expected) => {
    const { answer, drawn, changed } = open();
    expect(drawn()).toBeUndefined();
    answer(...answers);
    expect(drawn()).toBe(expected);
    expect(changed).toHaveBeenCalledTimes(expected === undefined ? 0 : 1);
  });

  it("is asked once, for its attributes last", () => {
    const { asked } = open();
    expect(asked).toHaveLength(1);
    expect(asked[0]).toContain("\x1b_Gi=31,");
    expect(asked[0]?.endsWith("\x1b[c")).toBe(true);
  });

  it.each<[string, Record<string, string>]>([
    ["tmux", { TERM: "tmux-256color" }],
    ["tmux that calls itself kitty", { TERM: "xterm-kitty", TMUX: "/tmp/tmux-0/default,1,0" }],
    ["screen", { TERM: "screen.xterm-256color" }],
    ["screen that calls itself xterm", { TERM: "xterm", STY: "1.pts" }],
    ["no colours", { TERM: "xterm-kitty", NO_COLOR: "1" }],
    ["the Linux console", { TERM: "linux" }],
    ["Terminal.app", { TERM: "xterm-256color", TERM_PROGRAM: "Apple_Terminal" }],
    ["a terminal that says nothing of itself", {}],
  ])("is not asked, and shows none: %s", async (_, variables) => {
    const { asked, answer, drawn, pictures, changed } = open(variables);
    await pictures.settled;
    answer("_Gi=31;OK", "[?62;4c");
    expect([asked, drawn(), changed.mock.calls]).toEqual([[], null, []]);
  });

  it("holds nothing up for long if it never answers, and is heard if it answers late", async () => {
    const { answer, drawn, changed, pictures } = open();
    vi.advanceTimersByTime(10_000);
    await pictures.settled;
    expect(drawn()).toBeNull();
    expect(changed).toHaveBeenCalledTimes(1);
    answer("_Gi=31;OK", "[?62c");
    expect(drawn()).toBe("_G");
  });

  it("holds nothing up any more once the screen is closed", async () => {
    const { drawn, changed, pictures } = open();
    pictures.close();
    await pictures.settled;
    expect(drawn()).toBeNull();
    vi.advanceTimersByTime(10_000);
    expect(changed).not.toHaveBeenCalled();
  });

  it("is believed the size of its cells within reason", () => {
    const rows = (answer: string) => {
      const opened = open();
      opened.answer("_Gi=31;OK", answer, "[?62c");
      return /,r=(\d+),/.exec(opened.pictures.drawn(picture, size) ?? "")?.[1];
    };
    expect(rows("[6;10;5t")).toBe("4");
    for (const answer of ["[6;20;10t", "[6;0;0t", "[6;1;1t", "[6;9999;9999t", "[4;10;5t"])
      expect(rows(answer)).toBe("2");
  });
});

describe("a picture that has to be converted", () => {
  /** What is drawn, once it is known. */
  async function shown({ pictures, drawn, changed }: ReturnType<typeof open>, one = picture) {
    if (drawn(one) === undefined)
      await expect.poll(() => changed.mock.calls.length, { timeout: 20_000 }).toBe(2);
    return pictures.drawn(one, size);
  }
  const sixelsIn = (text: string | null | undefined) => {
    const sixels = text?.slice(text.indexOf("\x1bP"), text.indexOf("\x1b\\") + 2) ?? "";
    return readSixels(sixels);
  };

  it("is pending until it is, drawn as sixels, and converted once", async () => {
    const opened = open();
    opened.answer("[6;20;10t", "[?62;4c");
    expect(opened.drawn()).toBeUndefined();
    const text = await shown(opened);
    const { width, height, pixels } = sixelsIn(text);
    expect([width, height]).toEqual([27, 36]);
    const colour = (x: number) => [...pixels.slice((20 * width + x) * 4, (20 * width + x) * 4 + 3)];
    expect([colour(3), colour(24)]).toEqual([
      [255, 0, 0],
      [0, 0, 255],
    ]);
    expect(opened.pictures.drawn(picture, size)).toBe(text);
    opened.pictures.close();
    expect(opened.pictures.drawn(picture, size)).toBe(text);
  });

  it("is a PNG where a terminal takes no other file", async () => {
    const opened = open();
    opened.answer("_Gi=31;OK", "[?62c");
    const text = await shown(opened, pictureOf(jpegPicture({ width: 400, height: 40 })));
    expect(text).toMatch(/f=100[^;]*;iVBORw0KGgo/);
  });

  it("is only described if it is broken", async () => {
    const opened = open();
    opened.answer("[?62;4c");
    expect(await shown(opened, pictureOf(file.subarray(0, 60)))).toBeNull();
  });

  it("is only described if the screen is closed before", async () => {
    const opened = open();
    opened.answer("[?62;4c");
    expect(opened.drawn()).toBeUndefined();
    opened.pictures.close();
    expect(opened.drawn()).toBeNull();
  });
});
