import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type ConversationActions, Driver } from "../../../../src/cli/conversation/driver.js";
import { KeyDecoder } from "../../../../src/cli/conversation/input/keys.js";
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
  const texts: string[] = [];
  const begin = (what: string, signal: AbortSignal) =>
    new Promise<void>((finish) => {
      done.push({ what, signal, finish });
      if (stops) signal.addEventListener("abort", () => finish());
    });
  const actions: ConversationActions = {
    runTurn: (prompt, signal) => begin(prompt, signal),
    runCommand: ({ name }, { argument, signal }) => begin(`/${name} ${argument}`.trim(), signal),
    interruptAgents: () => begin("interrupt agents", new AbortController().signal),
  };
  const history = { texts, add: (text: string) => texts.push(text) };
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
    texts,
    async type(keys: string) {
      for (const key of [...decoder.push(Buffer.from(keys)), ...decoder.settle()]) driver.press(key);
      await vi.advanceTimersByTimeAsync(0);
    },
    draft: () => store.read().composer.draft.text,
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
    expect(texts).toEqual(["do it"]);
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
    expect(store.read().queued).toEqual(["two", "/compact", "three"]);
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
