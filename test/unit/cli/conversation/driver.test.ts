import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type ConversationActions, Driver } from "../../../../src/cli/conversation/driver.js";
import { type Draft, sentText, shownText } from "../../../../src/cli/conversation/input/draft.js";
import { KeyDecoder } from "../../../../src/cli/conversation/input/keys.js";
import { commandOffer, type Offer, type Word } from "../../../../src/cli/conversation/input/menu.js";
import { type Answer, PendingQuestions, type Question } from "../../../../src/cli/conversation/question.js";
import { initialScreen, showQuestion } from "../../../../src/cli/conversation/screen/screen-state.js";
import { ScreenStore } from "../../../../src/cli/conversation/screen/screen-store.js";

interface Done {
  what: string;
  signal: AbortSignal;
  finish(): void;
}

/** A driver whose work ends when the test says so, or when it is interrupted and `stops`. */
function open({ stops = true } = {}) {
  const store = new ScreenStore(initialScreen({ columns: 80, rows: 24 }, 0));
  const questions = new PendingQuestions(
    (question) => store.update((state) => showQuestion(state, question)),
    () => Date.now(),
  );
  const done: Done[] = [];
  const drafts: Draft[] = [];
  const lookUps: { word: Word; show(offer: Offer): void }[] = [];
  const begin = (what: string, signal: AbortSignal) =>
    new Promise<void>((finish) => {
      done.push({ what, signal, finish });
      if (stops) signal.addEventListener("abort", () => finish());
    });
  const actions: ConversationActions = {
    runTurn: ({ text, pictures }, signal) => begin([text, ...pictures].join(" + "), signal),
    runShell: (script, signal) => begin(`! ${script}`, signal),
    runCommand: ({ name }, { argument, signal }) => begin(`/${name} ${argument}`.trim(), signal),
    interruptAgents: () => begin("interrupt agents", new AbortController().signal),
  };
  const history = { drafts, add: (draft: Draft) => void drafts.push(draft) };
  let hasLeft = false;
  let suspensions = 0;
  const driver = new Driver({
    store,
    questions,
    history,
    actions,
    screen: {
      suspend: async () => {
        suspensions++;
      },
    },
    complete(word, show) {
      lookUps.push({ word, show });
      if (word.kind === "command") show(commandOffer(word.typed));
    },
    findPictures: (text) =>
      text.endsWith(".png") ? [{ kind: "picture", path: text, label: `[picture ${text} 1x1]` }] : null,
    now: () => Date.now(),
  });
  void driver.left.then(() => {
    hasLeft = true;
  });
  const decoder = new KeyDecoder();
  return {
    store,
    questions,
    done,
    driver,
    texts: () => drafts.map(sentText),
    lookUps,
    async type(keys: string) {
      for (const key of [...decoder.push(Buffer.from(keys)), ...decoder.settle()]) driver.press(key);
      await vi.advanceTimersByTimeAsync(0);
    },
    draft: () => shownText(store.read().composer.draft),
    menu: () => store.read().composer.menu,
    hasLeft: () => hasLeft,
    suspensions: () => suspensions,
    whats: () => done.map(({ what }) => what),
    async finish() {
      done.at(-1)?.finish();
      await vi.advanceTimersByTimeAsync(0);
    },
  };
}

const yesOrNo: Question = {
  lines: [{ text: "Really?", tone: "warning" }],
  choices: [
    { key: "y", label: "yes" },
    { key: "n", label: "no" },
  ],
  takesText: false,
  dismissal: "no",
};

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

describe("ctrl-C between turns", () => {
  it("stops the agents that go on, and ends the session only when it is pressed again", async () => {
    const { type, whats, store, hasLeft } = open();
    const line = { id: "a", parentId: "r", name: "Ada", depth: 1, activity: "", since: 0 };
    const agents = new Map([["a", { ...line, state: "running" as const }]]);
    store.update((state) => ({ ...state, view: { ...state.view, agents } }));
    await type("\x03");
    expect(whats()).toEqual(["interrupt agents"]);
    expect(store.read().hint).toMatch(/^the agents are stopped/);
    expect(hasLeft()).toBe(false);
    await type("\x03");
    expect(hasLeft()).toBe(true);
  });
});

describe("Enter", () => {
  it("starts a turn with the draft, and remembers it", async () => {
    const { type, whats, texts, draft } = open();
    await type("do it\r");
    expect(whats()).toEqual(["do it"]);
    expect(texts()).toEqual(["do it"]);
    expect(draft()).toBe("");
  });

  it("sends nothing where there is nothing, and a paste only when it is pressed", async () => {
    const { type, whats, draft } = open();
    await type("\r  \r");
    await type("\x1b[200~/quit\r\nrm -rf /\r\n\x1b[201~");
    expect(whats()).toEqual([]);
    expect(draft()).toBe("  /quit\nrm -rf /\n");
    await type("\r");
    expect(whats()).toEqual(["/quit\nrm -rf /"]);
  });

  it("keeps what is entered during a turn for the next ones, in order", async () => {
    const { type, whats, store, finish } = open();
    await type("one\r");
    await type("two\r/compact\rthree\r");
    expect(whats()).toEqual(["one"]);
    expect(store.read().queued.map(sentText)).toEqual(["two", "/compact", "three"]);
    for (let turn = 0; turn < 3; turn++) await finish();
    expect(whats()).toEqual(["one", "two", "/compact", "three"]);
  });

  it("runs commands that disturb nobody beside a turn", async () => {
    const { type, whats } = open();
    await type("one\r/status\r");
    expect(whats()).toEqual(["one", "/status"]);
  });

  it("refuses a command that there is not, says what was meant, and clears the line", async () => {
    const { type, whats, store, draft } = open();
    await type("/statsu\r");
    expect(whats()).toEqual([]);
    expect(store.read().hint).toBe("there is no command /statsu: did you mean /status?");
    expect(draft()).toBe("");
    await type("\x1b[A");
    expect(draft()).toBe("/statsu");
    await type("\x03/home/me/x is odd\r");
    expect(whats()).toEqual(["/home/me/x is odd"]);
  });
});

describe("ctrl-Z", () => {
  it("suspends whatever is going on, and leaves the draft and the turn as they are", async () => {
    const { type, suspensions, draft, done } = open();
    await type("go\rnext\x1a");
    expect(suspensions()).toBe(1);
    expect(draft()).toBe("next");
    expect(done[0]?.signal.aborted).toBe(false);
  });
});

describe("ctrl-C", () => {
  it("interrupts the turn and not the program; what was to come next is a draft again", async () => {
    const { type, done, draft, store, hasLeft } = open();
    await type("one\rtwo\rthr\x03");
    expect(done[0]?.signal.aborted).toBe(true);
    expect(draft()).toBe("two\nthr");
    expect(store.read().queued).toEqual([]);
    expect(hasLeft()).toBe(false);
    await type("\r");
    expect(done[1]?.what).toBe("two\nthr");
    expect(done[1]?.signal.aborted).toBe(false);
  });

  it("clears a draft, and ends an idle session only when pressed twice within a second", async () => {
    const { type, draft, hasLeft, store } = open();
    await type("abc\x03");
    expect(draft()).toBe("");
    await type("\x03");
    expect(store.read().hint).toContain("ctrl-C again");
    expect(hasLeft()).toBe(false);
    vi.advanceTimersByTime(1500);
    await type("\x03");
    expect(hasLeft()).toBe(false);
    await type("\x03");
    expect(hasLeft()).toBe(true);
  });

  it("ends the program where a turn does not stop", async () => {
    const { type, hasLeft, store } = open({ stops: false });
    await type("x\r\x03");
    vi.advanceTimersByTime(3000);
    await type("\x03");
    expect(hasLeft()).toBe(false);
    expect(store.read().hint).toContain("ctrl-C again");
    await type("\x03");
    expect(hasLeft()).toBe(true);
  });
});

describe("ctrl-D", () => {
  it("ends an idle session at an empty draft only", async () => {
    const { type, hasLeft, finish } = open();
    await type("abc\x04");
    expect(hasLeft()).toBe(false);
    await type("\r\x04");
    expect(hasLeft()).toBe(false);
    await finish();
    await type("\x04");
    expect(hasLeft()).toBe(true);
  });
});

describe("a question", () => {
  it("is answered by its keys once a person had time to read it", async () => {
    const { type, questions, store } = open();
    const answer = questions.ask(yesOrNo);
    vi.advanceTimersByTime(500);
    await type("x");
    await type("y");
    expect(await answer).toEqual({ kind: "choice", choice: yesOrNo.choices[0] });
    expect(store.read().question).toBeNull();
  });

  it("is not answered by somebody in the middle of typing, nor by a paste", async () => {
    const { type, questions, draft, store } = open();
    await type("tr");
    const answers: Answer[] = [];
    void questions.ask(yesOrNo).then((answer) => answers.push(answer));
    await type("y ");
    vi.advanceTimersByTime(200);
    await type("n");
    vi.advanceTimersByTime(500);
    await type("\x1b[200~y\x1b[201~");
    expect(draft()).toBe("try ny");
    expect(store.read().question).toBe(yesOrNo);
    expect(answers).toEqual([]);
    await type("\x1b");
    expect(answers).toEqual([{ kind: "dismissed" }]);
  });

  it("that takes text has the draft to itself, and gives it back", async () => {
    const { type, questions, draft } = open();
    await type("my draft");
    const answer = questions.ask({ ...yesOrNo, takesText: true });
    expect(draft()).toBe("");
    await type("some yes text\r");
    expect(await answer).toEqual({ kind: "text", text: "some yes text" });
    expect(draft()).toBe("my draft");
  });

  it("waits for the one before it, and goes with the turn that asked", async () => {
    const { questions, type, store } = open();
    const first = questions.ask(yesOrNo);
    const stop = new AbortController();
    const second = questions.ask({ ...yesOrNo, lines: [] }, { signal: stop.signal });
    second.catch(() => undefined);
    stop.abort(new Error("interrupted"));
    await expect(second).rejects.toThrow("interrupted");
    expect(store.read().question).toBe(yesOrNo);
    await type("\x1b");
    await first;
    expect(store.read().question).toBeNull();
  });
});

describe("the list of commands", () => {
  it("is shown while a command is typed, and Enter runs what is chosen", async () => {
    const { type, menu, whats, draft } = open();
    await type("/st");
    expect(menu()).toMatchObject({ choices: [{ label: "/status" }], selected: 0 });
    await type("\r");
    expect(whats()).toEqual(["/status"]);
    expect(draft()).toBe("");
    expect(menu()).toBeNull();
  });

  it("is gone through with the keys up and down, and Tab completes", async () => {
    const { type, menu, draft, whats } = open();
    await type("/");
    const names = menu()?.choices.map(({ text }) => text) ?? [];
    await type("\x1b[B\x1b[B\x1b[A\t");
    expect(draft()).toBe(names[1]);
    await type("\x15/\x1b[A\x1b[B\r");
    expect(whats()).toEqual([names[0]]);
  });

  it("lets Enter complete a command that needs an argument, and not send it", async () => {
    const { type, draft, whats, lookUps } = open();
    await type("/mode\r");
    expect(draft()).toBe("/mode ");
    expect(whats()).toEqual([]);
    expect(lookUps.at(-1)?.word).toMatchObject({ kind: "argument", typed: "" });
    await type("\r");
    expect(whats()).toEqual(["/mode"]);
  });

  it("is closed by esc, also for what is typed of the same word, and is there again for the next one", async () => {
    const { type, menu, draft } = open();
    await type("/s\x1b");
    expect(menu()).toBeNull();
    await type("t");
    expect(menu()).toBeNull();
    expect(draft()).toBe("/st");
    await type("\x15/h");
    expect(menu()?.choices.map(({ label }) => label)).toContain("/help");
  });

  it("does not come for a message that is brought back, so that the keys go on to older ones", async () => {
    const { type, menu, draft, finish } = open();
    await type("older\r");
    await finish();
    await type("/status\r");
    await finish();
    await type("\x1b[A");
    expect(draft()).toBe("/status");
    expect(menu()).toBeNull();
    await type("\x1b[A");
    expect(draft()).toBe("older");
  });

  it("does not come between a person and a question", async () => {
    const { type, menu, questions } = open();
    const answer = questions.ask({ ...yesOrNo, takesText: true });
    await type("/s");
    expect(menu()).toBeNull();
    await type("\x1b");
    expect(await answer).toEqual({ kind: "dismissed" });
  });
});

describe("what can be chosen", () => {
  const offer = (...texts: string[]): Offer => ({
    choices: texts.map((text) => ({ text, label: text, summary: "", isWhole: false })),
    note: texts.length === 0 ? "nothing" : null,
  });

  it("is shown when it is found, unless something else was typed since", async () => {
    const { type, menu, lookUps } = open();
    await type("@a");
    const [, first] = lookUps;
    await type("b");
    first?.show(offer("a.ts "));
    expect(menu()).toBeNull();
    lookUps.at(-1)?.show(offer("ab.ts ", "xab.ts "));
    expect(menu()?.choices).toHaveLength(2);
    await type("\x1b[B");
    lookUps.at(-1)?.show(offer("other.ts "));
    expect(menu()).toMatchObject({ choices: [{}, {}], selected: 1 });
    await type(" ");
    lookUps.at(-1)?.show(offer("ab.ts "));
    expect(menu()).toBeNull();
  });

  it("is inserted by Enter, which then sends the message", async () => {
    const { type, whats, lookUps, draft, menu } = open();
    await type("see @a");
    lookUps.at(-1)?.show(offer('"a b.ts" ', "c.ts "));
    await type("\r");
    expect(draft()).toBe('see "a b.ts" ');
    expect(menu()).toBeNull();
    await type("\r");
    expect(whats()).toEqual(['see "a b.ts"']);
  });

  it("leaves the keys as they are where nothing was found", async () => {
    const { type, whats, lookUps, menu } = open();
    await type("see @a");
    lookUps.at(-1)?.show(offer());
    expect(menu()).toMatchObject({ choices: [], note: "nothing" });
    await type("\r");
    expect(whats()).toEqual(["see @a"]);
  });
});

describe("an exclamation mark", () => {
  it("runs what follows it as a command, after the turn that is running", async () => {
    const { type, whats, finish, texts } = open();
    await type("! ls -l\r");
    await finish();
    await type("work\r!make\r");
    expect(whats()).toEqual(["! ls -l", "work"]);
    await finish();
    expect(whats()).toEqual(["! ls -l", "work", "! make"]);
    expect(texts()).toEqual(["! ls -l", "work", "!make"]);
  });

  it("by itself says what it does", async () => {
    const { type, whats, store, draft } = open();
    await type("!\r");
    expect(whats()).toEqual([]);
    expect(store.read().hint).toContain("runs what follows");
    expect(draft()).toBe("!");
  });

  it("runs a command that esc stops", async () => {
    const { type, done } = open();
    await type("!sleep 100\r\x1b");
    expect(done[0]?.signal.aborted).toBe(true);
  });
});

describe("esc", () => {
  it("interrupts the turn, and what was to come next is a draft again", async () => {
    const { type, done, draft, store, hasLeft } = open();
    await type("one\rtwo\rthr\x1b");
    expect(done[0]?.signal.aborted).toBe(true);
    expect(draft()).toBe("two\nthr");
    expect(store.read().queued).toEqual([]);
    expect(hasLeft()).toBe(false);
  });

  it("never ends the session, however often it is pressed", async () => {
    const { type, hasLeft, store } = open({ stops: false });
    for (const key of ["x\r", "\x1b", "\x1b", "\x1b"]) await type(key);
    expect(hasLeft()).toBe(false);
    expect(store.read().hint).toContain("ctrl-C ends the session");
  });

  it("ends a search, a menu or a question before it interrupts", async () => {
    const { type, done, questions, store, menu } = open();
    for (const keys of ["work\r", "\x12wo", "\x1b"]) await type(keys);
    expect(store.read().composer.search).toBeNull();
    for (const keys of ["\x15/s", "\x1b"]) await type(keys);
    expect(menu()).toBeNull();
    const answer = questions.ask(yesOrNo);
    await type("\x1b");
    expect(await answer).toEqual({ kind: "dismissed" });
    expect(done[0]?.signal.aborted).toBe(false);
    await type("\x1b");
    expect(done[0]?.signal.aborted).toBe(true);
  });

  it("pressed twice within a second, clears the draft", async () => {
    const { type, draft, store } = open();
    for (const keys of ["some words", "\x1b"]) await type(keys);
    expect(draft()).toBe("some words");
    expect(store.read().hint).toContain("again to clear");
    vi.advanceTimersByTime(1500);
    await type("\x1b");
    expect(draft()).toBe("some words");
    await type("\x1b");
    expect(draft()).toBe("");
  });

  it("pressed twice at an empty draft, brings back the last message to the model", async () => {
    const { type, draft, finish, store } = open();
    for (const keys of ["first\r", "last\r", "/status\r", "!ls\r"]) {
      await type(keys);
      await finish();
    }
    for (const keys of ["\x1b", "\x1b"]) await type(keys);
    expect(draft()).toBe("last");
    await type("\x1b[A");
    expect(draft()).toBe("first");
    expect(store.read().queued).toEqual([]);
  });

  it("says nothing where there is nothing to bring back", async () => {
    const { type, draft, store } = open();
    for (const keys of ["\x1b", "\x1b"]) await type(keys);
    expect(draft()).toBe("");
    expect(store.read().hint).toBeNull();
  });
});

describe("a paste", () => {
  const long = "line\n".repeat(300);
  const paste = (text: string) => `\x1b[200~${text}\x1b[201~`;

  it("is folded in the draft, the queue and on the screen, and is sent in full", async () => {
    const { type, draft, whats, store, finish } = open();
    await type(`see ${paste(long)} well`);
    expect(draft()).toBe("see [300 lines pasted] well");
    await type("\r");
    expect(store.read().view.finished).toEqual([{ kind: "prompt", text: "see [300 lines pasted] well" }]);
    await type(`${paste(long)}\r`);
    expect(store.read().queued.map(shownText)).toEqual(["[300 lines pasted]"]);
    await finish();
    expect(whats()).toEqual([`see ${long} well`, long]);
  });

  it("that names a picture becomes one, and goes with the message", async () => {
    const { type, draft, whats } = open();
    await type(`what is ${paste("/tmp/dot.png")}?`);
    expect(draft()).toBe("what is [picture /tmp/dot.png 1x1]?");
    await type("\r");
    expect(whats()).toEqual(["what is [picture /tmp/dot.png 1x1]? + /tmp/dot.png"]);
  });

  it("that names a picture is text in a command", async () => {
    const { type, whats } = open();
    await type(`! file ${paste("/tmp/dot.png")}\r`);
    expect(whats()).toEqual(["! file /tmp/dot.png"]);
  });

  it("that names a picture is text where a question wants text", async () => {
    const { type, questions } = open();
    const answer = questions.ask({ ...yesOrNo, takesText: true });
    await type(`${paste("/tmp/dot.png")}\r`);
    expect(await answer).toEqual({ kind: "text", text: "/tmp/dot.png" });
  });

  it("is an answer in full", async () => {
    const { type, questions } = open();
    const answer = questions.ask({ ...yesOrNo, takesText: true });
    await type(`${paste(long)}\r`);
    expect(await answer).toEqual({ kind: "text", text: long.trim() });
  });
});
