import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import type { AgentPlacement } from "../../../../src/agent/agents/agent-label.js";
import type { AgentEvent } from "../../../../src/agent/turn/events.js";
import { liveRegion } from "../../../../src/cli/conversation/screen/live-lines.js";
import { initialScreen } from "../../../../src/cli/conversation/screen/screen-state.js";
import { EventNeutraliser } from "../../../../src/cli/conversation/screen/view-event.js";
import {
  initialView,
  reduceView,
  type ViewState,
} from "../../../../src/cli/conversation/screen/view-state.js";
import { RunDisplay } from "../../../../src/cli/display/run-display.js";

function placed(id: string, more: Partial<AgentPlacement> = {}): AgentPlacement {
  return { id, nickname: id, role: null, parentId: "root", depth: 1, isForked: false, ...more };
}

function started(agent: AgentPlacement, task: string | null = "a task"): AgentEvent[] {
  return [
    { kind: "agent-started", agent, task },
    { kind: "agent-state", agentId: agent.id, state: { kind: "running" } },
  ];
}

const runs = (agentId: string, script: string): AgentEvent => ({
  kind: "agent-event",
  agentId,
  event: { kind: "command-started", callId: "c", argv: ["bash", "-lc", script], cwd: "/" },
});
const done = (agentId: string, message: string): AgentEvent => ({
  kind: "agent-state",
  agentId,
  state: { kind: "completed", message },
});

function viewOf(events: readonly AgentEvent[], from: ViewState = initialView): ViewState {
  const neutraliser = new EventNeutraliser(() => 1000);
  return events
    .flatMap((event) => neutraliser.translate(event))
    .reduce((view, event) => reduceView(view, event), from);
}

function rowsOf(view: ViewState, columns = 80): string[] {
  const screen = { ...initialScreen({ columns, rows: 24 }, 13_000), stage: "open" as const, view };
  return liveRegion(screen).lines.map((line) =>
    line
      .map(({ text }) => text)
      .join("")
      .trimEnd(),
  );
}

describe("the lines of agents", () => {
  it("stand below each other as a tree, with what each one does and for how long", () => {
    const view = viewOf([
      ...started(placed("Ada", { role: "explorer" })),
      ...started(placed("Bose")),
      ...started(placed("Curie", { parentId: "Ada", depth: 2 })),
      runs("Ada", "npm test\nnpm run x"),
      done("Bose", "It is fine.\nReally."),
      { kind: "agent-state", agentId: "Curie", state: { kind: "failed", message: "no more tokens" } },
    ]);
    expect(rowsOf(view).slice(0, 3)).toEqual([
      "  ◦ Ada (explorer) 12 s $ npm test …",
      "    ✗ Curie failed: no more tokens",
      "  ✓ Bose done: It is fine. …",
    ]);
  });

  it("end when their agent is closed, and what it said stays above", () => {
    const view = viewOf([
      ...started(placed("Ada")),
      done("Ada", "It is fine."),
      { kind: "agent-state", agentId: "Ada", state: { kind: "closed" } },
    ]);
    expect(view.agents.size).toBe(0);
    expect(view.finished).toEqual([{ kind: "notice", tone: "quiet", text: "Ada done: It is fine." }]);
  });

  it("do not break a message that is arriving", () => {
    const arriving = viewOf([
      { kind: "turn-started", prompt: "go" },
      { kind: "text-delta", text: "half of " },
    ]);
    const during = viewOf([...started(placed("Ada")), done("Ada", "x")], arriving);
    expect(during.finished).toEqual([]);
    const after = viewOf([{ kind: "message", text: "half of it" }], during);
    expect(after.finished).toEqual([
      { kind: "message", piece: { kind: "markdown", text: "half of it", hasGap: false }, isFirst: true },
      { kind: "notice", tone: "quiet", text: "Ada done: x" },
    ]);
  });

  it("are safe for a terminal and fit it, whatever an agent is called and does", () => {
    const evil = "\u001b[2J\u202e\r\n";
    const agent = placed("Ada", { nickname: `A${evil}${"a".repeat(200)}`, role: `r${evil}` });
    const events = [
      ...started(agent, `${evil}${"x".repeat(500)}`),
      runs("Ada", `${evil}rm`),
      done("Ada", evil),
    ];
    const rows = rowsOf(viewOf(events), 40);
    const target = new PassThrough();
    const display = new RunDisplay(target, { usesColour: false });
    for (const event of events) display.show(event);
    const shown = `${rows.join("\n")}\n${String(target.read())}`;
    for (const character of ["\u001b", "\u202e", "\r"]) expect(shown).not.toContain(character);
    expect(Math.max(...rows.map((row) => row.length))).toBeLessThanOrEqual(40);
    expect(
      String(shown)
        .split("\n")
        .every((line) => line.length < 400),
    ).toBe(true);
  });

  it("say nothing of an agent that nobody has heard of", () => {
    expect(viewOf([runs("nobody", "ls"), done("nobody", "x")])).toEqual(initialView);
  });
});
