import { describe, expect, it } from "vitest";
import {
  drawnPicture,
  type PictureProtocol,
  pictureProtocol,
  readPicture,
} from "../../../../../src/cli/conversation/screen/picture.js";
import { readEnvironment } from "../../../../../src/lib/env.js";
import { Screen } from "../../../../support/screen.js";

/** A PNG of this size, as far as its header says; `more` bytes follow. */
function png(width: number, height: number, more = 0): string {
  const bytes = Buffer.alloc(24 + more, 7);
  bytes.write("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "latin1");
  bytes.writeUInt32BE(width, 16);
  bytes.writeUInt32BE(height, 20);
  return `data:image/png;base64,${bytes.toString("base64")}`;
}

const ESC = "\x1b";
const kittyChunk = new RegExp(`${ESC}_G([^;]*);([^${ESC}]*)${ESC}\\\\`, "g");
const gif = "data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA=";

function drawn(url: string, protocol: PictureProtocol, { columns = 80, rows = 24 } = {}): string | null {
  const picture = readPicture(url, "a picture");
  if (picture === null) throw new Error("it is no picture");
  return drawnPicture(picture, { protocol, columns, rows });
}

describe("a picture", () => {
  it("is known by its bytes, not by what it is said to be", () => {
    expect(readPicture(png(640, 480).replace("image/png", "image/jpeg"), "x")).toMatchObject({
      size: { width: 640, height: 480 },
      file: { type: "image/png" },
    });
    expect(readPicture("data:image/png;base64,aGVsbG8gd29ybGQ=", "x")).toBeNull();
    expect(readPicture("https://x.test/a.png", "x")).toBeNull();
  });

  it("is only described if a terminal could choke on it, or if it is no base64", () => {
    expect(readPicture(png(640, 480, 5_000_000), "x")).toMatchObject({ size: { width: 640 }, file: null });
    expect(readPicture(png(60_000, 60_000), "x")).toMatchObject({ size: { width: 60_000 }, file: null });
    expect(readPicture(`${png(640, 480, 90)}\x1b\\\x1b[2J`, "x")).toMatchObject({ file: null });
    expect(drawn(png(640, 480, 5_000_000), "kitty")).toBeNull();
  });

  it("is not sent where the protocol does not take it", () => {
    expect(drawn(gif, "kitty")).toBeNull();
    expect(drawn(gif, "iterm2")).toBeNull();
  });
});

describe("a terminal", () => {
  it.each<[string, Record<string, string>, PictureProtocol | null]>([
    ["kitty", { TERM: "xterm-kitty" }, "kitty"],
    ["Ghostty", { TERM: "xterm-ghostty" }, "kitty"],
    ["Konsole", { TERM: "xterm-256color", KONSOLE_VERSION: "230401" }, "kitty"],
    ["an old Konsole", { TERM: "xterm-256color", KONSOLE_VERSION: "210401" }, null],
    ["iTerm2", { TERM: "xterm-256color", TERM_PROGRAM: "iTerm.app" }, "iterm2"],
    ["iTerm2 through ssh", { TERM: "xterm-256color", LC_TERMINAL: "iTerm2" }, "iterm2"],
    ["WezTerm", { TERM: "xterm-256color", TERM_PROGRAM: "WezTerm" }, "iterm2"],
    ["an editor that was started from iTerm2", { LC_TERMINAL: "iTerm2", TERM_PROGRAM: "vscode" }, null],
    ["an editor that was started from Konsole", { KONSOLE_VERSION: "230401", TERM_PROGRAM: "vscode" }, null],
    ["another one", { TERM: "xterm-256color", TERM_PROGRAM: "Apple_Terminal" }, null],
    ["tmux in kitty", { TERM: "tmux-256color", KITTY_WINDOW_ID: "1" }, null],
    ["tmux that calls itself kitty", { TERM: "xterm-kitty", TMUX: "/tmp/tmux-0/default,1,0" }, null],
    ["kitty without colours", { TERM: "xterm-kitty", NO_COLOR: "1" }, null],
  ])("is known by its variables: %s", (_what, variables, protocol) => {
    expect(pictureProtocol(readEnvironment({ HOME: "/root", ...variables }))).toBe(protocol);
  });

  it("gets a picture for kitty in chunks, which together are the file", () => {
    const url = png(640, 480, 10_000);
    const chunks = [...(drawn(url, "kitty") ?? "").matchAll(kittyChunk)];
    expect(chunks.map(([, keys]) => keys)).toEqual([
      "a=T,f=100,q=2,C=1,r=20,m=1",
      "q=2,m=1",
      "q=2,m=1",
      "q=2,m=0",
    ]);
    expect(chunks.map(([, , data]) => data).join("")).toBe(url.split(",")[1]);
    for (const [, , data = ""] of chunks) expect(data.length).toBeLessThanOrEqual(4096);
  });

  it("gets a picture for iTerm2 as one control string", () => {
    const url = png(640, 480, 100);
    expect(drawn(url, "iterm2")).toContain(
      `\x1b]1337;File=inline=1;size=124;height=20;preserveAspectRatio=1;doNotMoveCursor=1:${url.split(",")[1]}\x07`,
    );
  });

  it.each<[string, [number, number], { columns: number; rows: number }, number | null]>([
    ["as high as it is", [200, 90], { columns: 80, rows: 24 }, 5],
    ["at most twenty rows", [600, 3000], { columns: 200, rows: 60 }, 20],
    ["lower than the screen", [600, 3000], { columns: 80, rows: 12 }, 8],
    ["no wider than the screen", [2000, 200], { columns: 42, rows: 24 }, 1],
    ["nothing where it is too wide", [2000, 20], { columns: 42, rows: 24 }, null],
    ["nothing where there are hardly any rows", [200, 200], { columns: 42, rows: 4 }, null],
  ])("shows it %s", (_what, [width, height], size, rows) => {
    const text = drawn(png(width, height), "kitty", size);
    expect(text === null ? null : Number(/,r=(\d+),/.exec(text)?.[1])).toBe(rows);
  });

  it.each<PictureProtocol>(["kitty", "iterm2"])(
    "has room for it, also at its lower end, and goes on below it: %s",
    async (protocol) => {
      const screen = new Screen({ rows: 10, cols: 40 });
      const picture = drawn(png(60, 60), protocol, { columns: 40, rows: 10 });
      const before = Array.from({ length: 9 }, (_, n) => `line ${n}\n`).join("");
      await screen.write(`${before}${picture}\nafter\n`.replaceAll("\n", "\r\n"));
      expect(screen.history.slice(8)).toEqual(["line 8", "", "", "", "after", ""]);
      expect(screen.cursor).toEqual({ row: 9, column: 0 });
      expect(screen.deeds).toEqual([]);
    },
  );
});
