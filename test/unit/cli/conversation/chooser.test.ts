import { describe, expect, it } from "vitest";
import {
  type Chooser,
  chooserOf,
  chooserRows,
  pressInList,
} from "../../../../src/cli/conversation/chooser.js";
import type { Key, KeyName } from "../../../../src/cli/conversation/input/keys.js";
import { chooseFrom, PendingQuestions, type Question } from "../../../../src/cli/conversation/question.js";

const named = (...names: string[]) => chooserOf(names.map((name) => ({ key: name, label: name })));
const key = (name: KeyName): Key => ({ kind: "key", name });
const typed = (text: string): Key => ({ kind: "text", text });

/** The list after these keys, and the entry that Enter would choose. */
function press(list: Chooser, ...keys: Key[]): { list: Chooser; chosen: string | null } {
  let now = list;
  for (const one of keys) {
    const pressed = pressInList(now, one);
    if (pressed.kind !== "list") throw new Error(`the list is over after ${JSON.stringify(one)}`);
    now = pressed.list;
  }
  const end = pressInList(now, key("enter"));
  return { list: now, chosen: end.kind === "chosen" ? end.entry.key : null };
}

function rows(list: Chooser, room: { columns?: number; maxRows?: number } = {}): string[] {
  return chooserRows(list, { columns: 60, maxRows: 20, dismissal: "none", ...room }).map((line) =>
    line.map(({ text }) => text).join(""),
  );
}

describe("a list", () => {
  it("is walked through, and stops at both ends", () => {
    const list = named("one", "two", "three");
    expect(press(list, key("up")).chosen).toBe("one");
    expect(press(list, key("down")).chosen).toBe("two");
    expect(press(list, ...Array(9).fill(key("down"))).chosen).toBe("three");
    expect(press(list, key("line-end"), key("line-start")).chosen).toBe("one");
  });

  it("is narrowed to entries with all words that are typed or pasted, in any case", () => {
    const list = chooserOf([
      { key: "a", label: "Fix the tests", about: "main" },
      { key: "b", label: "fix docs", search: "fix docs of the sea" },
      { key: "c", label: "other" },
    ]);
    expect(press(list, typed("FIX")).chosen).toBe("a");
    expect(press(list, typed("main te")).chosen).toBe("a");
    expect(press(list, { kind: "paste", text: "sea\nfix", isCut: false }).chosen).toBe("b");
    expect(press(list, typed("nothing like it")).chosen).toBeNull();
    const back = press(list, typed("docx"), key("backspace"), typed("s"));
    expect(back.chosen).toBe("b");
    expect(press(back.list, key("delete-to-start")).chosen).toBe("a");
  });

  it("does not grow with what is typed into it", () => {
    expect(press(named("one"), typed("x".repeat(10_000))).list.query.length).toBeLessThan(1000);
  });

  it("shows the entries around the present one, within its room, and says what it has left out", () => {
    const list = named(...Array.from({ length: 100 }, (_, index) => `entry ${index}`));
    expect(rows(list, { maxRows: 5 })).toEqual([
      "› entry 0",
      "  entry 1",
      "  entry 2",
      "  ⋮ 97 more",
      "  up, down, Enter · type to narrow · esc  none",
    ]);
    const shown = rows(press(list, ...Array(50).fill(key("down"))).list, { maxRows: 7, columns: 9 });
    expect(shown).toContain("› entry …");
    expect(shown.length).toBeLessThanOrEqual(7);
    expect(rows(press(list, typed("nowhere")).list)[0]).toBe("  nothing is listed");
  });
});

describe("a question with a list", () => {
  function open() {
    const shown: (Question | null)[] = [];
    const questions = new PendingQuestions(
      (question) => shown.push(question),
      () => 0,
    );
    return { questions, shown };
  }

  const settled = () => new Promise((resolve) => setImmediate(resolve));

  it("takes every key, until one is chosen or it is dismissed", async () => {
    const { questions } = open();
    const first = chooseFrom(questions, { title: "Which?", list: named("y", "n") });
    for (const one of [typed("n"), key("tab"), key("enter")]) expect(questions.press(one)).toBe(true);
    expect(await first).toBe("n");
    expect(questions.press(typed("n"))).toBe(false);
    const second = chooseFrom(questions, { title: "Which?", list: named("y") });
    questions.press(key("escape"));
    expect(await second).toBeNull();
  });

  it("reads further entries only as far as somebody looks, and no more once it is over", async () => {
    const { questions } = open();
    let read = 0;
    let isClosed = false;
    async function* source() {
      try {
        for (;;) {
          read++;
          yield Array.from({ length: 30 }, (_, index) => ({ key: `${read} ${index}`, label: `${read}` }));
        }
      } finally {
        isClosed = true;
      }
    }
    const chosen = chooseFrom(questions, { title: "Which?", list: named() }, { source: source() });
    for (let round = 0; round < 20; round++) await settled();
    expect(read).toBe(2);
    for (let n = 0; n < 50; n++) questions.press(key("down"));
    for (let round = 0; round < 20; round++) await settled();
    expect(read).toBeGreaterThan(2);
    expect(read).toBeLessThan(6);
    questions.press(key("enter"));
    expect(await chosen).toBe("2 20");
    for (let round = 0; round < 20; round++) await settled();
    expect(isClosed).toBe(true);
  });

  it("fails with the error of what reads its entries, and ends at an abort", async () => {
    const { questions, shown } = open();
    async function* broken() {
      yield [{ key: "a", label: "a" }];
      throw new RangeError("cannot be read");
    }
    await expect(
      chooseFrom(questions, { title: "Which?", list: named() }, { source: broken() }),
    ).rejects.toThrow(RangeError);
    const stop = new AbortController();
    const asked = chooseFrom(questions, { title: "Which?", list: named("a") }, { signal: stop.signal });
    stop.abort(new RangeError("over"));
    await expect(asked).rejects.toThrow(RangeError);
    expect(shown.at(-1)).toBeNull();
  });
});
