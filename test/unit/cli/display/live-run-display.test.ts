import { PassThrough } from "node:stream";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { AgentEvent } from "../../../../src/agent/turn/events.js";
import { LiveRunDisplay } from "../../../../src/cli/display/live-run-display.js";
import { Screen } from "../../../support/screen.js";

const cost = { userMs: 1, systemMs: 1, maxRssBytes: 1 };
const noTokens = { inputTokens: 0, cachedInputTokens: 0, outputTokens: 0, reasoningOutputTokens: 0 };
const size = { rows: 20, cols: 60 };

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

function open() {
  const target = Object.assign(new PassThrough(), { isTTY: true, rows: size.rows, columns: size.cols });
  const display = new LiveRunDisplay(target, { usesColour: true });
  const screen = new Screen(size);
  return {
    target,
    display,
    show(...events: AgentEvent[]) {
      for (const event of events) display.show(event);
      vi.advanceTimersByTime(100);
    },
    /** What a person sees, without what is empty. */
    async seen() {
      const bytes = String(target.read() ?? "").replaceAll("\n", "\r\n");
      vi.useRealTimers();
      await screen.write(bytes);
      vi.useFakeTimers();
      return screen.history.map((row) => row.trimEnd()).filter((row) => row !== "");
    },
  };
}

const start = (callId: string, name = "exec_command"): AgentEvent => ({
  kind: "call-started",
  callId,
  name,
  input: "{}",
});
const run = (callId: string, script: string): AgentEvent => ({
  kind: "command-started",
  callId,
  argv: ["sh", "-c", script],
  cwd: "/",
});
const print = (callId: string, text: string): AgentEvent => ({
  kind: "command-output",
  callId,
  chunk: Buffer.from(text),
});
const end = (callId: string, name = "exec_command"): AgentEvent[] => [
  { kind: "command-ended", callId, exitCode: 0, output: "", durationMs: 12, usage: cost },
  { kind: "call-ended", callId, name, content: "", success: true, durationMs: 12 },
];
const lines = (count: number) => Array.from({ length: count }, (_, n) => `line ${n + 1}\n`).join("");

describe("a run on a terminal", () => {
  it("shows the end of what runs, in place, and leaves it when it is done", async () => {
    const { show, seen } = open();
    show(start("a"), run("a", "make"), print("a", lines(9)));
    expect(await seen()).toEqual([
      "$ make",
      "  │ ⋮ 1 line above",
      ...[2, 3, 4, 5, 6, 7, 8, 9].map((n) => `  │ line ${n}`),
      "  … 0 s",
    ]);
    show(print("a", "line 10\n"));
    vi.advanceTimersByTime(3000);
    expect((await seen()).slice(-2)).toEqual(["  │ line 10", "  … 3 s"]);
    show(...end("a"), { kind: "turn-completed", usage: noTokens });
    expect(await seen()).toEqual([
      "$ make",
      "  │ ⋮ 2 lines above",
      ...[3, 4, 5, 6, 7, 8, 9, 10].map((n) => `  │ line ${n}`),
      "  ✓ exit 0 · 12 ms",
    ]);
  });

  it("shows how long a turn takes while nothing else is to be seen of it", async () => {
    const { show, seen } = open();
    show({ kind: "turn-started", prompt: "go" });
    expect(await seen()).toEqual(["◦ working 0 s · ctrl-C interrupts"]);
    show(start("a"), run("a", "make"));
    vi.advanceTimersByTime(3000);
    expect(await seen()).toEqual(["$ make", "  … 3 s", "◦ working 3 s · ctrl-C interrupts"]);
    show(...end("a"), { kind: "turn-completed", usage: noTokens });
    expect(await seen()).toEqual(["$ make", "  ✓ exit 0 · 12 ms"]);
  });

  it("keeps two commands apart that run side by side", async () => {
    const { show, seen } = open();
    show(
      start("a"),
      start("b"),
      run("a", "one"),
      run("b", "two"),
      print("b", "from two\n"),
      print("a", "from one\n"),
    );
    show(...end("b"));
    expect(await seen()).toEqual([
      "$ two",
      "  │ from two",
      "  ✓ exit 0 · 12 ms",
      "$ one",
      "  │ from one",
      "  … 0 s",
    ]);
  });

  it("shows a message as it is written, and code in it indented", async () => {
    const { show, seen } = open();
    show({ kind: "message", text: "**So**:\n```sh\nls -l\n```\n- one" }, start("a"), run("a", "make"));
    expect((await seen()).slice(0, 4)).toEqual(["● **So**:", "    ls -l", "  - one", "$ make"]);
  });

  it("leaves the terminal alone while somebody is asked", async () => {
    const { show, seen, target } = open();
    show(start("a"), run("a", "make"), print("a", "working\n"), start("q", "request_user_input"));
    expect(await seen()).toEqual([]);
    target.write("Which one? ");
    show(print("a", "more\n"), ...end("a"));
    vi.advanceTimersByTime(5000);
    expect(await seen()).toEqual(["Which one?"]);
    target.write("this\n");
    show({
      kind: "call-ended",
      callId: "q",
      name: "request_user_input",
      content: "{}",
      success: true,
      durationMs: 9,
    });
    expect(await seen()).toEqual([
      "Which one? this",
      "$ make",
      "  │ working",
      "  │ more",
      "  ✓ exit 0 · 12 ms",
    ]);
  });

  it("has shown all that is done when somebody is asked, however soon that is", async () => {
    const { show, seen } = open();
    const said: AgentEvent = { kind: "message", text: "Now the other." };
    show(
      start("a"),
      run("a", "make"),
      print("a", "built\n"),
      ...end("a"),
      said,
      start("q", "request_user_input"),
    );
    expect(await seen()).toEqual(["$ make", "  │ built", "  ✓ exit 0 · 12 ms", "● Now the other."]);
  });

  it("shows what the model says before a call, but not its last message: that is the result", async () => {
    const { show, seen } = open();
    show(
      { kind: "text-delta", text: "I look." },
      { kind: "message", text: "I look." },
      start("a"),
      run("a", "ls"),
      ...end("a"),
    );
    show({ kind: "message", text: "All done." }, { kind: "turn-completed", usage: noTokens });
    expect(await seen()).toEqual(["● I look.", "$ ls", "  ✓ exit 0 · 12 ms"]);
  });

  it("shows the last message too where the turn does not complete, and no more of what ran", async () => {
    const { show, seen } = open();
    show(start("a"), run("a", "make"), { kind: "message", text: "Half way." }, { kind: "turn-interrupted" });
    expect(await seen()).toEqual(["● Half way."]);
    vi.advanceTimersByTime(5000);
    expect(await seen()).toEqual(["● Half way."]);
  });
});
