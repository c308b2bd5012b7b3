import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import type { CommandSession } from "../../../../src/tools/command/command-session.js";
import { CommandSessions } from "../../../../src/tools/command/command-sessions.js";
import type { ToolExit, ToolProcess } from "../../../../src/tools/tool-sandbox.js";

/** A process that runs until it is killed or told to exit. */
function createProcess() {
  const stdout = new PassThrough();
  let finish: (exit: ToolExit) => void = () => undefined;
  const exit = new Promise<ToolExit>((resolve) => {
    finish = resolve;
  });
  const state = { isKilled: false };
  const end = () => {
    stdout.end();
    finish({
      exitCode: 0,
      signal: null,
      timedOut: false,
      outOfMemory: false,
      treeEnded: false,
      causes: [],
      durationMs: 1,
      usage: { userMs: 0, systemMs: 0, maxRssBytes: 0 },
      startFailure: null,
    });
  };
  const process: ToolProcess = {
    stdin: null,
    stdout,
    stderr: null,
    exit,
    async kill() {
      state.isKilled = true;
      end();
      await exit;
    },
  };
  return { process, state, end };
}

async function fill(sessions: CommandSessions, count: number) {
  const kept: (ReturnType<typeof createProcess> & { session: CommandSession })[] = [];
  for (let index = 0; index < count; index++) {
    const made = createProcess();
    kept.push({ ...made, session: await sessions.add(made.process, undefined) });
  }
  return kept;
}

function countingUp() {
  let next = 0;
  return (min: number) => min + next++;
}

describe("CommandSessions", () => {
  it("gives each process an id from 1000 to 99999 that no other has", async () => {
    const ranges: [number, number][] = [];
    const answers = [1000, 1000, 1000, 4242];
    const sessions = new CommandSessions((min, max) => {
      ranges.push([min, max]);
      return answers[ranges.length - 1] ?? 0;
    });
    const [first, second] = await fill(sessions, 2);
    expect([first?.session.id, second?.session.id]).toEqual([1000, 4242]);
    expect(ranges[0]).toEqual([1000, 100_000]);
  });

  it("warns from 60 processes on", async () => {
    const sessions = new CommandSessions(countingUp());
    await fill(sessions, 59);
    expect(sessions.advice()).toBeNull();
    await fill(sessions, 1);
    expect(sessions.advice()).toMatch(/is 60 and you currently have 60 processes open/);
  });

  it("ends the process used least recently when a 65th starts", async () => {
    const sessions = new CommandSessions(countingUp());
    const kept = await fill(sessions, 64);
    sessions.find(kept[0]?.session.id ?? 0);
    await fill(sessions, 1);
    expect(sessions.count).toBe(64);
    expect(kept.map(({ state }) => state.isKilled).indexOf(true)).toBe(1);
  });

  it("prefers one that has ended, and lets it be", async () => {
    const sessions = new CommandSessions(countingUp());
    const kept = await fill(sessions, 64);
    kept[30]?.end();
    await kept[30]?.session.waitForEnd(1000, undefined);
    await fill(sessions, 1);
    expect(sessions.find(kept[30]?.session.id ?? 0)).toBeUndefined();
    expect(kept.some(({ state }) => state.isKilled)).toBe(false);
  });

  it("protects the eight used most recently even when they have ended", async () => {
    const sessions = new CommandSessions(countingUp());
    const kept = await fill(sessions, 64);
    kept[60]?.end();
    await kept[60]?.session.waitForEnd(1000, undefined);
    await fill(sessions, 1);
    expect(sessions.find(kept[60]?.session.id ?? 0)).toBeDefined();
    expect(kept[0]?.state.isKilled).toBe(true);
  });

  it("ends all that still run when it is closed", async () => {
    const sessions = new CommandSessions(countingUp());
    const kept = await fill(sessions, 3);
    await sessions.close();
    expect(kept.every(({ state }) => state.isKilled)).toBe(true);
    expect(sessions.count).toBe(0);
  });
});
