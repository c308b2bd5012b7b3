import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { composerWith } from "../../../../../src/cli/conversation/input/composer.js";
import { draftOf } from "../../../../../src/cli/conversation/input/draft.js";
import { type Choice, menuOf } from "../../../../../src/cli/conversation/input/menu.js";
import { liveRegion } from "../../../../../src/cli/conversation/screen/live-lines.js";
import { markdownLines } from "../../../../../src/cli/conversation/screen/markdown-lines.js";
import { initialScreen, type ScreenState } from "../../../../../src/cli/conversation/screen/screen-state.js";
import type { StyledLine } from "../../../../../src/cli/conversation/screen/styled-line.js";
import { type RunningCall, reduceView } from "../../../../../src/cli/conversation/screen/view-state.js";
import { displayWidth } from "../../../../../src/lib/terminal/display-width.js";
import { foldOf } from "../../../../../src/sandbox/output/line-fold.js";

const open: ScreenState = {
  ...initialScreen({ columns: 60, rows: 24 }, 0),
  stage: "open",
  footer: ["workspace-write", "gpt"],
};

function rows(state: ScreenState): string[] {
  return liveRegion(state).lines.map(textOf);
}

function textOf(line: StyledLine): string {
  return line
    .map(({ text }) => text)
    .join("")
    .trimEnd();
}

function running(callId: string, lineCount: number): RunningCall {
  const output = foldOf(Array.from({ length: lineCount }, (_, n) => `line ${n + 1}\n`).join(""));
  const command = { script: `make ${callId}`, output, end: { kind: "running" as const } };
  return {
    callId,
    name: "shell",
    title: "shell",
    startedAt: 0,
    command,
    progress: "",
    changes: null,
    edits: "",
    showedPlan: false,
  };
}

function busy(calls: readonly RunningCall[], change: Partial<ScreenState> = {}): ScreenState {
  const turn = { startedAt: 0, isStopping: false };
  return { ...open, now: 61_500, ...change, view: { ...open.view, turn, calls } };
}

function menuWith(count: number, selected = 0) {
  const choices = Array.from(
    { length: count },
    (_, n): Choice => ({ text: `/c${n}`, label: `/c${n}`, summary: `the command ${n}`, isWhole: true }),
  );
  const menu = menuOf({ kind: "command", from: 0, to: 1, typed: "" }, { choices, note: "a note" });
  return menu === null ? null : { ...menu, selected: count === 0 ? null : selected };
}

describe("the live part of the screen", () => {
  it("is a place to type and what the session is, while nothing runs", () => {
    expect(rows(open)).toEqual(["", "›", "workspace-write · gpt"]);
    expect(liveRegion(open).cursor).toEqual({ x: 2, y: 1 });
  });

  it("shows what runs, for how long, and what comes next", () => {
    expect(rows(busy([running("c", 9)], { queued: [draftOf("and then\nmore")] }))).toEqual([
      "$ make c",
      "  │ ⋮ 4 lines above · ctrl-O shows them",
      ...[5, 6, 7, 8, 9].map((n) => `  │ line ${n}`),
      "  … 1 m 01 s",
      "",
      "◦ working 1 m 01 s · esc interrupts",
      "  next: and then",
      "",
      "›",
      "workspace-write · gpt",
    ]);
  });

  it("names the key that interrupts: esc unless that closes something first, and none while the turn stops", () => {
    const activity = (state: ScreenState) => rows(state).find((row) => row.startsWith("◦ "));
    const { composer } = open;
    const question = { lines: [], choices: [], takesText: false, dismissal: "no" };
    const asking = busy([], { question });
    expect(activity(asking)).toBe("◦ waiting for you 1 m 01 s · ctrl-C interrupts");
    const listing = busy([], { composer: { ...composer, menu: menuWith(2) } });
    expect(activity(listing)).toBe("◦ working 1 m 01 s · ctrl-C interrupts");
    const { view } = busy([]);
    const stopping = { ...busy([]), view: { ...view, turn: { startedAt: 0, isStopping: true } } };
    expect(activity(stopping)).toBe("◦ stopping 1 m 01 s");
  });

  it("says what a command does with the changes, how much is copied, and until when it can be stopped", () => {
    const work = { what: "applying", startedAt: 0, isStopping: false };
    const applying = { ...open, now: 3000, work, copied: "2 of 9 files" };
    expect(rows(applying)[1]).toBe("◦ applying 3 s · 2 of 9 files · esc interrupts");
    expect(rows({ ...applying, copied: null })[1]).toBe("◦ applying 3 s · esc interrupts");
    expect(rows({ ...applying, work: { ...work, isStopping: true } })[1]).toBe("◦ stopping 3 s");
  });

  it("shows more of an output where that is asked for", () => {
    expect(rows(busy([running("c", 100)], { isUnfolded: true })).length).toBeGreaterThan(15);
  });

  it("lays out what has come of a message, and shows no more than the end of it if it is long", () => {
    const coming = (text: string) => {
      const view = reduceView(open.view, { kind: "text-delta", text });
      return liveRegion({ ...open, view }, markdownLines).lines.map(textOf);
    };
    expect(coming("Done.\n\n- **one**\n- tw").slice(0, -3)).toEqual(["", "  - one", "  - tw"]);
    expect(coming("- one").slice(0, -3)).toEqual(["● - one"]);
    expect(coming("So:\n``").slice(0, -3)).toEqual(["● So:"]);
    const long = coming(Array.from({ length: 500 }, (_, n) => `- item ${n}\n`).join(""));
    expect(long.length).toBeLessThan(open.size.rows);
    expect(long.slice(-4)).toEqual(["  - item 499", "", "›", "workspace-write · gpt"]);
  });

  it("shows a question above the draft", () => {
    const question = {
      lines: [{ text: "Run it?", tone: "warning" as const }],
      choices: [{ key: "y", label: "yes" }],
      takesText: true,
      dismissal: "no answer",
    };
    expect(rows({ ...open, question })).toEqual([
      "",
      "Run it?",
      "  y    yes",
      "       or type an answer and press Enter",
      "  esc  no answer",
      "",
      "›",
      "workspace-write · gpt",
    ]);
  });

  it("lists below the draft what can be chosen, around what is chosen", () => {
    const composer = { ...composerWith(draftOf("/")), menu: menuWith(3, 1) };
    expect(rows({ ...open, composer })).toEqual([
      "",
      "› /",
      "  /c0  the command 0",
      "▸ /c1  the command 1",
      "  /c2  the command 2",
      "  a note",
      "workspace-write · gpt",
    ]);
    expect(liveRegion({ ...open, composer }).cursor).toEqual({ x: 3, y: 1 });
    const long = rows({ ...open, composer: { ...composer, menu: menuWith(30, 20) } });
    expect(long.slice(2, -1)).toEqual([
      ...[17, 18, 19].map((n) => `  /c${n}  the command ${n}`),
      "▸ /c20  the command 20",
      ...[21, 22, 23].map((n) => `  /c${n}  the command ${n}`),
      "  and 23 more",
      "  a note",
    ]);
  });

  it("is never as high or wide as the screen, however small that is, and has the cursor in it", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 12, max: 90 }),
        fc.integer({ min: 3, max: 40 }),
        fc.nat(6),
        fc.string({ unit: "grapheme", maxLength: 200 }),
        fc.array(fc.string(), { maxLength: 4 }),
        fc.boolean(),
        fc.nat(30),
        (columns, height, calls, draft, queued, isUnfolded, count) => {
          const many = Array.from({ length: calls }, (_, n) => running(`c${n}`, n * 30));
          const state = busy(many, {
            size: { columns, rows: height },
            composer: { ...composerWith(draftOf(draft)), menu: menuWith(count) },
            queued: queued.map(draftOf),
            isUnfolded,
            hint: draft === "" ? null : "a hint that is longer than a narrow screen is wide, by far",
          });
          const { lines, cursor } = liveRegion(state);
          expect(lines.length).toBeLessThan(height);
          for (const line of lines)
            expect(line.reduce((sum, { text }) => sum + displayWidth(text), 0)).toBeLessThan(columns);
          expect(cursor?.y).toBeLessThan(lines.length);
          expect(cursor?.x).toBeLessThan(columns);
        },
      ),
    );
  });
});
