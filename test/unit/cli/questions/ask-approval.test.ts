import { PassThrough } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import type { ApprovalRequest } from "../../../../src/agent/approvals/approvals.js";
import { terminalApprover } from "../../../../src/cli/questions/ask-approval.js";

const request: ApprovalRequest = {
  callId: "call",
  place: "escalated",
  reason: null,
  denial: null,
  prefix: ["npm", "install"],
  action: {
    kind: "command",
    tool: "shell",
    argv: ["npm", "install"],
    cwd: "/work",
    takesInput: false,
    escalation: { isAsked: true, justification: null, prefixRule: null },
  },
};

/** A terminal that remembers its mode, and what it shows. */
class FakeTerminal {
  readonly stdin = Object.assign(new PassThrough(), {
    isTTY: true,
    setRawMode: (isRaw: boolean) => this.modes.push(isRaw),
  });
  readonly stderr = Object.assign(new PassThrough(), { isTTY: true, columns: 80, rows: 24 });
  readonly modes: boolean[] = [];
  readonly suspend = () => {
    this.shown += `[stopped, ${this.modes.at(-1) ? "raw" : "as before"}]`;
  };
  shown = "";

  constructor() {
    this.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.shown += text;
    });
  }

  ask(signal?: AbortSignal, usesColour = false) {
    return terminalApprover(this, { usesColour, settleMs: 20 }).ask(request, { signal });
  }

  async shows(text: string): Promise<void> {
    while (!this.shown.includes(text)) await sleep(2);
  }
}

describe("a question on a terminal", () => {
  it.each([
    ["y", "approved", "yes"],
    ["Y", "approved", "yes"],
    ["y\r", "approved", "yes"],
    ["a", "approved_for_session", "yes, from now on"],
    ["p", { approvedPrefix: ["npm", "install"] }, "yes, from now on"],
    ["n", "denied", "no"],
    ["\r", "denied", "no"],
    ["\n", "denied", "no"],
    ["\u0004", "denied", "no"],
    ["\u001b", "abort", "no, the turn ends"],
    ["\u0003", "abort", "no, the turn ends"],
    ["\u001c", "abort", "no, the turn ends"],
  ])("takes %j for %j", async (key, answer, spoken) => {
    const terminal = new FakeTerminal();
    const asked = terminal.ask();
    await terminal.shows("Answer (Enter is no): ");
    terminal.stdin.write(key);
    expect(await asked).toEqual(answer);
    expect(terminal.shown.endsWith(`Answer (Enter is no): ${spoken}\n`)).toBe(true);
    expect(terminal.modes).toEqual([true, false]);
    expect(terminal.stdin.isPaused()).toBe(true);
    expect(terminal.stdin.listenerCount("data")).toBe(0);
  });

  it("shows each choice, and takes other keys, arrows and pasted text for nothing", async () => {
    const terminal = new FakeTerminal();
    const asked = terminal.ask();
    await terminal.shows("Answer");
    expect(terminal.shown).toContain(
      [
        "  y    yes, this once",
        "  a    yes, and for this command in this directory until the session ends",
        "  p    yes, and for every command that begins with: npm install",
        "  n    no, go on without it",
        "  esc  no, and end the turn",
      ].join("\n"),
    );
    for (const key of ["x", " ", "\u001b[A", "yes\n", "y y", "\u001b[200~y\u001b[201~"]) {
      terminal.stdin.write(key);
      await sleep(2);
    }
    terminal.stdin.write("a");
    expect(await asked).toBe("approved_for_session");
  });

  it("lets ctrl-Z suspend the job, with the terminal as the shell wants it, and asks again", async () => {
    const terminal = new FakeTerminal();
    const asked = terminal.ask();
    await terminal.shows("Answer (Enter is no): ");
    terminal.stdin.write("\u001a");
    await terminal.shows("[stopped, as before]\n  Answer (Enter is no): ");
    terminal.stdin.write("y");
    expect(await asked).toBe("approved");
    expect(terminal.modes).toEqual([true, false, true, false]);
  });

  it("what was typed before it was shown is no answer", async () => {
    const terminal = new FakeTerminal();
    terminal.stdin.write("y");
    const asked = terminal.ask();
    terminal.stdin.write("y");
    await sleep(5);
    terminal.stdin.write("y\r");
    await terminal.shows("Answer");
    await sleep(10);
    terminal.stdin.write("n");
    expect(await asked).toBe("denied");
  });

  it("is no where the input ends", async () => {
    const terminal = new FakeTerminal();
    const asked = terminal.ask();
    await terminal.shows("Answer");
    terminal.stdin.end();
    expect(await asked).toBe("denied");
    expect(await terminal.ask()).toBe("denied");
  });

  it("is taken away by an abort, and the terminal is as it was", async () => {
    for (const isShown of [true, false]) {
      const terminal = new FakeTerminal();
      const stop = new AbortController();
      const asked = terminal.ask(stop.signal);
      if (isShown) await terminal.shows("Answer");
      stop.abort(new Error("enough"));
      await expect(asked).rejects.toThrow("enough");
      expect(terminal.shown.includes("(withdrawn)")).toBe(isShown);
      expect(terminal.modes).toEqual([true, false]);
    }
  });

  it("has colours where it may", async () => {
    const terminal = new FakeTerminal();
    const asked = terminal.ask(undefined, true);
    await terminal.shows("Answer");
    terminal.stdin.write("n");
    await asked;
    expect(terminal.shown).toContain("\x1b[36m  │ npm install\x1b[39m");
  });
});
