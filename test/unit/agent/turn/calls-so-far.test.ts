import { describe, expect, it } from "vitest";
import { type CallEvent, CallsSoFar } from "../../../../src/agent/turn/calls-so-far.js";

const cost = { userMs: 1, systemMs: 1, maxRssBytes: 1 };

const start = (name: string): CallEvent => ({ kind: "call-started", callId: "c", name, input: "{}" });
const end: CallEvent = {
  kind: "call-ended",
  callId: "c",
  name: "exec_command",
  content: "",
  success: true,
  durationMs: 1,
};
const run: CallEvent = { kind: "command-started", callId: "c", argv: ["serve"], cwd: "/" };
const print = (text: string): CallEvent => ({
  kind: "command-output",
  callId: "c",
  chunk: Buffer.from(text),
});
const exit = (exitCode: number): CallEvent => ({
  kind: "command-ended",
  callId: "c",
  exitCode,
  output: "",
  durationMs: 1,
  usage: cost,
});

class Text {
  text = "";

  push(chunk: Uint8Array): void {
    this.text += Buffer.from(chunk).toString();
  }
}

function callsAfter(...events: CallEvent[]) {
  const calls = new CallsSoFar(() => new Text(), { now: () => 7 });
  for (const event of events) calls.take(event);
  return calls;
}

describe("the calls of a session", () => {
  it("are known with their commands and what these have printed", () => {
    const [call] = callsAfter(start("exec_command"), run, print("a"), print("b")).known;
    expect(call?.start).toMatchObject({ name: "exec_command" });
    expect(call?.parts.command).toMatchObject({ startedAt: 7, end: null, output: { text: "ab" } });
  });

  it("are known until they have ended, and their commands, too", () => {
    expect(callsAfter(start("read_file"), end).known).toEqual([]);
    const calls = callsAfter(start("exec_command"), run, end);
    expect(calls.known).toHaveLength(1);
    const { call, part } = calls.take(exit(3));
    expect(part).toBe(call.parts.command);
    expect(part?.end).toMatchObject({ exitCode: 3 });
    expect(calls.known).toEqual([]);
  });

  it("end a command once, and none whose start was not seen", () => {
    const calls = callsAfter(start("shell"), run, exit(0));
    expect(calls.take(exit(1)).part).toBeNull();
    expect(callsAfter(start("shell")).take(exit(1)).part).toBeNull();
  });

  it("stay forgotten, whatever comes of them later", () => {
    const calls = callsAfter(start("exec_command"), run);
    for (const call of calls.known) calls.forget(call);
    for (const event of [print("late"), exit(0), end]) expect(calls.take(event).part).toBeNull();
    expect(calls.known).toEqual([]);
  });

  it("begin anew when a model uses an id again, but for a command that still runs", () => {
    const declined: CallEvent = {
      kind: "command-declined",
      callId: "c",
      argv: ["rm"],
      cwd: "/",
      reason: "no",
    };
    const answered = callsAfter(start("shell"), declined, run, exit(1), start("read_file"));
    expect(answered.known).toMatchObject([
      { start: { name: "read_file" }, declined: null, end: null, parts: {} },
    ]);
    expect(answered.known[0]?.parts.command).toBeUndefined();
    const running = callsAfter(start("exec_command"), run, end, start("read_file"));
    expect(running.known).toMatchObject([{ start: { name: "read_file" }, end: null }]);
    expect(running.take(exit(0)).part).toMatchObject({ kind: "command", end: { exitCode: 0 } });
    running.take(end);
    expect(running.known).toEqual([]);
  });
});
