import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import type { AgentEvent } from "../../../../src/agent/turn/events.js";
import { RunDisplay } from "../../../../src/cli/display/run-display.js";

const cost = { userMs: 1, systemMs: 1, maxRssBytes: 1 };

function show(events: readonly AgentEvent[], usesColour = false): string {
  const target = new PassThrough();
  const display = new RunDisplay(target, { usesColour });
  for (const event of events) display.show(event);
  return String(target.read() ?? "");
}

function command(argv: readonly string[], output: readonly string[], exitCode = 0): AgentEvent[] {
  return [
    { kind: "call-started", callId: "c", name: "shell", input: "{}" },
    { kind: "command-started", callId: "c", argv, cwd: "/" },
    ...output.map((text): AgentEvent => ({ kind: "command-output", callId: "c", chunk: Buffer.from(text) })),
    { kind: "command-ended", callId: "c", exitCode, output: "", durationMs: 12, usage: cost },
    { kind: "call-ended", callId: "c", name: "shell", content: "", success: exitCode === 0, durationMs: 12 },
  ];
}

describe("what a run shows", () => {
  it("is each command with its output in whole lines, and how it ended", () => {
    expect(show(command(["bash", "-lc", "npm test"], ["ok 1\nok", " 2\n", "end"], 1))).toBe(
      "$ npm test\n  │ ok 1\n  │ ok 2\n  │ end\n  ✗ exit 1 · 12 ms\n",
    );
  });

  it("is an argument list as a shell would take it", () => {
    expect(show(command(["echo", "a b"], []))).toBe("$ echo 'a b'\n  ✓ exit 0 · 12 ms\n");
  });

  it("is a call that runs no command, with its arguments and the beginning of what came of it", () => {
    const content = Array.from({ length: 30 }, (_, n) => `L${n + 1}: x\u001b[2J`).join("\n");
    const input = JSON.stringify({ file_path: "/w/a\u001b[2J", limit: 30 });
    const shown = show([
      { kind: "call-started", callId: "c", name: "read_file", input },
      { kind: "call-ended", callId: "c", name: "read_file", content, success: true, durationMs: 1 },
    ]).split("\n");
    expect(shown[0]).toMatch(/^• read_file \/w\/a.* limit=30$/);
    expect(shown.slice(1)).toHaveLength(22);
    expect(shown.at(-2)).toBe("  │ ⋮ 10 lines not shown");
    expect(shown.join("")).not.toContain("\u001b");
  });

  it("is each file that a patch changes, and each step of a plan", () => {
    const changes = [
      { path: "/w/a", kind: "add" as const },
      { path: "/w/b", kind: "update" as const },
      { path: "/w/c\n", kind: "delete" as const },
    ];
    expect(
      show([
        { kind: "call-started", callId: "p", name: "apply_patch", input: "*** Begin Patch" },
        { kind: "patch-started", callId: "p", changes, patch: "" },
        { kind: "patch-ended", callId: "p", changes, success: true },
        { kind: "call-ended", callId: "p", name: "apply_patch", content: "ok", success: true, durationMs: 1 },
        {
          kind: "plan-updated",
          callId: "u",
          explanation: null,
          steps: [
            { step: "look", status: "completed" },
            { step: "change", status: "in_progress" },
            { step: "test", status: "pending" },
          ],
        },
      ]),
    ).toMatch(/^A \/w\/a\nM \/w\/b\nD \/w\/c\S*\n {2}✔ look\n {2}▶ change\n {2}□ test\n$/);
  });

  it("is the start and the end of a long output, with the number of lines between", () => {
    const lines = show(
      command(["seq", "100"], [Array.from({ length: 100 }, (_, n) => `${n + 1}\n`).join("")]),
    );
    expect(lines.split("\n").slice(1, -2)).toEqual([
      ...Array.from({ length: 20 }, (_, n) => `  │ ${n + 1}`),
      "  │ ⋮ 75 lines not shown",
      ...Array.from({ length: 5 }, (_, n) => `  │ ${n + 96}`),
    ]);
  });

  it.each([20, 21, 25, 26])("misses none of %i lines that it could show", (count) => {
    const output = Array.from({ length: count }, (_, n) => `line ${n + 1}\n`);
    const shown = show(command(["x"], output));
    expect(shown.includes("not shown")).toBe(count > 25);
    expect(shown.match(/line \d+/g)).toHaveLength(Math.min(count, 25));
  });

  it("is what the model says before a call, but not its last message: that is the result", () => {
    const text = show([
      { kind: "message", text: "I look." },
      ...command(["ls"], []),
      { kind: "message", text: "All done." },
      {
        kind: "turn-completed",
        usage: { inputTokens: 0, cachedInputTokens: 0, outputTokens: 0, reasoningOutputTokens: 0 },
      },
    ]);
    expect(text).toMatch(/^\nI look\.\n\$ ls\n/);
    expect(text).not.toContain("All done.");
  });

  it("is the last message too when the turn does not complete", () => {
    expect(show([{ kind: "message", text: "Half way." }, { kind: "turn-interrupted" }])).toContain(
      "Half way.",
    );
  });

  it("is why a call was refused that ran no command", () => {
    const refused: AgentEvent = {
      kind: "call-ended",
      callId: "c",
      name: "nope",
      content: "unsupported call: nope",
      success: false,
      durationMs: 1,
    };
    expect(show([refused])).toBe("✗ nope: unsupported call: nope\n");
  });

  it("does nothing to a terminal, whatever model, command or tool say", () => {
    const evil = "\x1b]0;owned\x07\x1b[2J\x9b31mtext\x1b[31m";
    const text = show([
      { kind: "message", text: evil },
      ...command(["printf", evil], [evil, evil]),
      { kind: "reconnecting", attempt: 1, maxAttempts: 2, delayMs: 5, reason: evil },
      { kind: "warning", message: evil },
      { kind: "call-ended", callId: "d", name: evil, content: evil, success: false, durationMs: 1 },
    ]);
    expect([...text].filter((char) => /\p{Cc}/u.test(char) && char !== "\n")).toEqual([]);
  });

  it("has colours only where they are wanted", () => {
    expect(show(command(["ls"], []), true)).toContain("\x1b[");
    expect(show(command(["ls"], []))).not.toContain("\x1b");
  });
});
