import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { AgentEvent } from "../../../../../src/agent/turn/events.js";
import { blockLines } from "../../../../../src/cli/conversation/screen/block-lines.js";
import { markdownLines } from "../../../../../src/cli/conversation/screen/markdown-lines.js";
import { lastPieces } from "../../../../../src/cli/conversation/screen/message-pieces.js";
import { EventNeutraliser, type ViewEvent } from "../../../../../src/cli/conversation/screen/view-event.js";
import {
  initialView,
  reduceView,
  unfoldLast,
  type ViewState,
} from "../../../../../src/cli/conversation/screen/view-state.js";
import { BrigError } from "../../../../../src/errors.js";
import { markdownText } from "../../../../support/markdown.js";

const cost = { userMs: 1, systemMs: 1, maxRssBytes: 1 };
const noTokens = { inputTokens: 0, cachedInputTokens: 0, outputTokens: 0, reasoningOutputTokens: 0 };

function viewAfter(events: readonly AgentEvent[], from = initialView): ViewState {
  const neutraliser = new EventNeutraliser(() => 1000, { cwd: "/w" });
  return events.flatMap((event): ViewEvent[] => neutraliser.translate(event)).reduce(reduceView, from);
}

/** What is on the screen for good, as a person reads it. */
function shown({ finished }: ViewState, columns = 60): string[] {
  return finished.flatMap((block) =>
    blockLines(block, { columns, markdownLines, foldHint: " · ctrl-O shows them" }).map((line) =>
      line
        .map(({ text }) => text)
        .join("")
        .trimEnd(),
    ),
  );
}

const say = (...pieces: string[]) => pieces.map((text): AgentEvent => ({ kind: "text-delta", text }));
const message = (text: string): AgentEvent => ({ kind: "message", text });
const start = (callId: string, name: string, args: unknown = {}): AgentEvent => ({
  kind: "call-started",
  callId,
  name,
  input: JSON.stringify(args),
});
const run = (callId: string, script: string): AgentEvent => ({
  kind: "command-started",
  callId,
  argv: ["bash", "-lc", script],
  cwd: "/",
});
const print = (callId: string, text: string): AgentEvent => ({
  kind: "command-output",
  callId,
  chunk: Buffer.from(text, "latin1"),
});
const exit = (callId: string, exitCode = 0): AgentEvent => ({
  kind: "command-ended",
  callId,
  exitCode,
  output: "",
  durationMs: 12,
  usage: cost,
});
const end = (callId: string, name: string, content = "", success = true): AgentEvent => ({
  kind: "call-ended",
  callId,
  name,
  content,
  success,
  durationMs: 12,
});
const lines = (count: number) => Array.from({ length: count }, (_, n) => `line ${n + 1}\n`).join("");

describe("what the model says", () => {
  it("is on the screen for good as soon as a block of it is complete, and only once", () => {
    const coming = viewAfter(say("Fir", "st.\n\nSec"));
    expect(shown(coming)).toEqual(["● First."]);
    expect(lastPieces(coming.streaming.message)).toMatchObject([{ text: "Sec" }]);
    expect(shown(viewAfter([...say("Fir", "st.\n\nSec", "ond."), message("First.\n\nSecond.")]))).toEqual([
      "● First.",
      "",
      "  Second.",
    ]);
  });

  it("is on the screen line by line where it is code", () => {
    expect(shown(viewAfter(say("So:\n``", "`\none\n\nt")))).toEqual(["● So:", "", "    one"]);
    expect(shown(viewAfter(say("- So:\n```\none\n")))).toEqual(["● - So:", "", "    one"]);
    expect(shown(viewAfter(say("So:\n```\none\n\ntwo\n\n```\nAnd\n", "\nso")))).toEqual([
      "● So:",
      "",
      "    one",
      "",
      "    two",
      "",
      "  And",
    ]);
  });

  it("is the same in the end, however it came", () => {
    fc.assert(
      fc.property(markdownText, fc.array(fc.nat(12), { maxLength: 200 }), (text, sizes) => {
        const pieces: string[] = [];
        let at = 0;
        for (const size of sizes) {
          pieces.push(text.slice(at, at + size));
          at += size;
        }
        const whole = shown(viewAfter([message(text)]));
        expect(shown(viewAfter([...say(...pieces), message(text)]))).toEqual(whole);
        const broken = say(...pieces, text.slice(at));
        expect(shown(viewAfter([...broken, { kind: "turn-interrupted" }])).slice(0, -1)).toEqual(whole);
      }),
      { numRuns: 500 },
    );
  });

  it("is the same in the end, however long a line or a block of it is", () => {
    const long = `${"word ".repeat(10_000)}\n${"- item\n".repeat(6000)}\n\`\`\`\n${"x".repeat(50_000)}\n\`\`\`\n.${"😀".repeat(20_000)}`;
    const pieces = long.match(/.{1,777}/gs) ?? [];
    const whole = shown(viewAfter([message(long)]));
    expect(shown(viewAfter([...say(...pieces), message(long)]))).toEqual(whole);
    expect(whole.join("")).not.toMatch(/\ufffd|[\ud800-\udbff](?![\udc00-\udfff])/);
    expect(whole.join("").match(/😀/gu)).toHaveLength(20_000);
    expect(whole.filter((row) => row === "  - item")).toHaveLength(6000);
  });

  it("is shown where it comes all at once, or otherwise than announced", () => {
    expect(shown(viewAfter([message("All\nat once")]))).toEqual(["● All", "  at once"]);
    expect(shown(viewAfter([...say("One thing"), message("Another")]))).toEqual(["● One thing", "● Another"]);
  });

  it("stays as far as it came where it breaks off", () => {
    const broken = viewAfter([
      ...say("Half a sen"),
      { kind: "reconnecting", attempt: 1, maxAttempts: 5, delayMs: 200, reason: "cut" },
      ...say("A whole one."),
      message("A whole one."),
    ]);
    expect(shown(broken)).toEqual(["● Half a sen", "! reconnecting in 200 ms (1/5): cut", "● A whole one."]);
  });

  it("may be nothing", () => {
    expect(shown(viewAfter([...say("\n", " "), message("\n ")]))).toEqual([]);
  });
});

describe("a command", () => {
  it("shows the end of its output while it runs and afterwards, and counts the rest", () => {
    const running = viewAfter([start("c", "exec_command"), run("c", "make"), print("c", lines(9))]);
    expect(running.calls[0]?.command?.output.lineCount).toBe(9);
    expect(shown(running)).toEqual([]);
    const done = viewAfter([
      start("c", "exec_command"),
      run("c", "make"),
      print("c", lines(9)),
      exit("c", 2),
      end("c", "exec_command"),
    ]);
    expect(shown(done)).toEqual([
      "$ make",
      "  │ ⋮ 4 lines above · ctrl-O shows them",
      ...[5, 6, 7, 8, 9].map((n) => `  │ line ${n}`),
      "  ✗ exit 2 · 12 ms",
    ]);
    expect(done.calls).toEqual([]);
  });

  it("is unfolded on demand, once, and then the one before it", () => {
    const done = viewAfter([
      start("c", "shell"),
      run("c", "make"),
      print("c", lines(9)),
      exit("c"),
      end("c", "shell"),
    ]);
    const unfolded = unfoldLast(done);
    expect(shown(unfolded).slice(-10)).toEqual([
      "⋯ $ make",
      ...lines(9)
        .trimEnd()
        .split("\n")
        .map((line) => `  │ ${line}`),
    ]);
    expect(unfoldLast(unfolded)).toBe(unfolded);
    const again = viewAfter(
      [start("d", "shell"), run("d", "test"), print("d", lines(20)), exit("d"), end("d", "shell")],
      done,
    );
    const both = shown(unfoldLast(unfoldLast(again)));
    expect(both.filter((row) => row.startsWith("⋯"))).toEqual(["⋯ $ test", "⋯ $ make"]);
  });

  it("that outlives its call goes on in the background until it ends", () => {
    const before = [
      start("c", "exec_command"),
      run("c", "serve"),
      print("c", "up\n"),
      end("c", "exec_command"),
    ];
    const left = viewAfter(before);
    expect(shown(left)).toEqual(["$ serve", "  │ up", "  … still running in the background"]);
    expect(left.background.size).toBe(1);
    const over = viewAfter([...before, print("c", "down\n"), exit("c", 143)]);
    expect(shown(over).slice(3)).toEqual(["$ serve", "  │ down", "  ✗ exit 143 · 12 ms"]);
    expect(over.background.size).toBe(0);
  });

  it("beside another keeps its own output", () => {
    const view = viewAfter([
      start("a", "shell"),
      start("b", "shell"),
      run("a", "one"),
      run("b", "two"),
      print("b", "from two\n"),
      print("a", "from one\n"),
    ]);
    expect(view.calls.map(({ command }) => command?.output.head)).toEqual([["from one"], ["from two"]]);
  });
});

describe("other calls", () => {
  it("show a short answer, and of a long one the size", () => {
    const read = (count: number) => [
      start("r", "read_file", { file_path: "/w/a" }),
      end("r", "read_file", lines(count)),
    ];
    expect(shown(viewAfter(read(2)))).toEqual(["• read_file /w/a", "  │ line 1", "  │ line 2"]);
    expect(shown(viewAfter(read(60)))).toEqual(["• read_file /w/a", "  │ 60 lines · ctrl-O shows them"]);
  });

  it("show the pictures that the model was shown, below what they are", () => {
    const url = `data:image/png;base64,${Buffer.from("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x40\0\0\0\x30", "latin1").toString("base64")}`;
    const parts = [
      { type: "input_text" as const, text: "look" },
      { type: "input_image" as const, image_url: url },
      { type: "input_image" as const, image_url: "data:image/png;base64,AAAA" },
    ];
    const ended = { ...end("v", "view_image", "image/png, 64×48, 24 B"), parts } as AgentEvent;
    const view = viewAfter([start("v", "view_image", { path: "/w/a.png" }), ended]);
    expect(shown(view)).toEqual(["• view_image /w/a.png", "  │ image/png, 64×48, 24 B"]);
    expect(view.finished.slice(1)).toMatchObject([
      { kind: "picture", picture: { name: null, size: { width: 64, height: 48 } } },
    ]);
  });

  it("say why they were refused", () => {
    const refused = viewAfter([
      start("x", "nothing"),
      end("x", "nothing", "unsupported call: nothing", false),
    ]);
    expect(shown(refused)).toEqual(["✗ nothing", "  │ unsupported call: nothing"]);
  });

  it("are files for a patch, and steps for a plan", () => {
    const changes = [
      { path: "/w/a", kind: "add" as const },
      { path: "/w2/b", kind: "update" as const },
    ];
    const patch = [
      "*** Begin Patch",
      "*** Add File: a",
      "+new",
      "*** Update File: /w2/b",
      "@@ there",
      "-old",
      "+newer",
      "*** End Patch",
    ].join("\n");
    const view = viewAfter([
      start("p", "apply_patch"),
      { kind: "patch-started", callId: "p", changes, patch },
      { kind: "patch-ended", callId: "p", changes, success: true },
      end("p", "apply_patch", "Success."),
      start("u", "update_plan"),
      {
        kind: "plan-updated",
        callId: "u",
        explanation: "Now.",
        steps: [
          { step: "look", status: "completed" },
          { step: "change", status: "in_progress" },
          { step: "test", status: "pending" },
        ],
      },
      end("u", "update_plan", "Plan updated"),
      start("q", "request_user_input"),
      end("q", "request_user_input", '{"answers":{}}'),
    ]);
    expect(shown(view)).toEqual([
      "✎ patched 2 files",
      "  A a",
      "  M /w2/b",
      "  │ *** Add File: a",
      "  │ +new",
      "  │ *** Update File: /w2/b",
      "  │ @@ there",
      "  │ -old",
      "  │ +newer",
      "☰ plan",
      "  Now.",
      "  ✔ look",
      "  ▶ change",
      "  □ test",
    ]);
  });
});

describe("a patch", () => {
  const changes = [{ path: "/w/a", kind: "add" as const }];
  const patch = `*** Begin Patch\n*** Add File: a\n${lines(14).replace(/^/gm, "+").slice(0, -1)}*** End Patch\n`;
  const started: AgentEvent = { kind: "patch-started", callId: "p", changes, patch };

  it("shows its first lines, without the name of its only file twice, and the rest on request", () => {
    const view = viewAfter([start("p", "apply_patch"), started, end("p", "apply_patch", "Success.")]);
    const first = Array.from({ length: 12 }, (_, n) => `  │ +line ${n + 1}`);
    expect(shown(view)).toEqual([
      "✎ patched 1 file",
      "  A a",
      ...first,
      "  │ ⋮ 2 lines below · ctrl-O shows them",
    ]);
    expect(shown(unfoldLast(view)).slice(-3)).toEqual(["  │ +line 12", "  │ +line 13", "  │ +line 14"]);
  });

  it("that failed shows why, and nothing of what it would have done", () => {
    const view = viewAfter([start("p", "apply_patch"), started, end("p", "apply_patch", "No.", false)]);
    expect(shown(view)).toEqual(["✗ the patch failed", "  A a", "  │ No."]);
    expect(view.folded).toEqual([]);
  });
});

describe("a turn", () => {
  it("runs from its start to its end, and leaves no call behind", () => {
    const running = viewAfter([
      { kind: "turn-started", prompt: "go" },
      start("c", "shell"),
      run("c", "sleep"),
    ]);
    expect(running.turn).toEqual({ startedAt: 1000, isStopping: false });
    const stopped = viewAfter([{ kind: "turn-interrupted" }], running);
    expect(stopped).toMatchObject({ turn: null, calls: [] });
    expect(shown(stopped)).toEqual(["! interrupted"]);
    expect(viewAfter([{ kind: "turn-completed", usage: noTokens }], running).turn).toBeNull();
  });

  it("that fails says why and what to do", () => {
    const error = new BrigError("the endpoint refuses the key", { code: "model.auth", hint: "brig login" });
    expect(
      shown(
        viewAfter([
          { kind: "turn-started", prompt: "go" },
          { kind: "turn-failed", error },
        ]),
      ),
    ).toEqual(["✗ the endpoint refuses the key", "  hint: brig login"]);
  });
});

describe("nothing that a model or a command wrote", () => {
  const evil = "a\x1b]52;c;ZXZpbA==\x07b\x1b[2Jc\x1b]0;title\x07d\u202ee\x1b[10;10Hf\x9b2Jg\rh\x07";
  const dangerous = /(?![\n\t])[\p{Cc}\p{Bidi_Control}]/u;

  it("gets through, wherever it stands and however it is cut into pieces", () => {
    const cut = (text: string) => [...text].map((character) => character);
    const events: AgentEvent[] = [
      ...say(...cut(evil)),
      message(evil),
      { kind: "reasoning", text: evil },
      { kind: "warning", message: evil },
      start("c", evil, { path: evil }),
      run("c", evil),
      ...cut(evil).map(
        (text): AgentEvent => ({ kind: "command-output", callId: "c", chunk: Buffer.from(text) }),
      ),
      exit("c"),
      end("c", evil, evil),
      start("x", evil, { path: evil }),
      end("x", evil, evil, false),
      start("p", "apply_patch"),
      { kind: "patch-started", callId: "p", changes: [{ path: evil, kind: "add" }], patch: `+${evil}` },
      end("p", "apply_patch", evil),
      start("f", "apply_patch"),
      { kind: "patch-started", callId: "f", changes: [{ path: evil, kind: "add" }], patch: evil },
      end("f", "apply_patch", evil, false),
      start("u", "update_plan"),
      { kind: "plan-updated", callId: "u", explanation: evil, steps: [{ step: evil, status: "pending" }] },
      { kind: "turn-failed", error: new BrigError(evil, { code: "model.failed", hint: evil }) },
    ];
    const view = viewAfter(events);
    const all = shown(view, 200);
    expect(all.length).toBeGreaterThan(15);
    for (const row of all) expect(row).not.toMatch(dangerous);
    expect(JSON.stringify(view.calls)).not.toContain("\\u001b");
  });
});
