import { beforeEach, describe, expect, it } from "vitest";
import { EngineGate, type EnginePause } from "../../../../../src/batch/runs/admission/engine-gate.js";
import { ManualClock, settle } from "../../../../support/manual-clock.js";

let clock: ManualClock;
let pauses: EnginePause[];
let probes: number;
let isEngineWell: boolean;
let gate: EngineGate;
const never = new AbortController().signal;

beforeEach(() => {
  clock = new ManualClock();
  pauses = [];
  probes = 0;
  isEngineWell = false;
  gate = new EngineGate({
    clock,
    random: () => 0,
    probe: async () => {
      probes += 1;
      if (!isEngineWell) throw new Error("still unwell");
    },
    onPause: (pause) => pauses.push(pause),
    limits: {
      minOutcomes: 4,
      windowMs: 60_000,
      firstPauseMs: 40_000,
      longestPauseMs: 100_000,
      startsPerSecond: 1000,
    },
  });
});

/** Runs an operation when the gate lets it. */
async function pass<T>(through: EngineGate, operation: () => Promise<T>, signal = never): Promise<T> {
  await through.turn(signal);
  try {
    const result = await operation();
    through.note({ isFault: false, cause: null });
    return result;
  } catch (error) {
    const cause = error instanceof Error ? error.message : null;
    through.note({ isFault: cause === "engine", cause });
    throw error;
  }
}

/** Runs operations one after the other that end as the text says: `.` well, `E` the engine's fault, `x` another. */
async function outcomes(text: string): Promise<void> {
  for (const letter of text) {
    const error = letter === "E" ? new Error("engine") : letter === "x" ? new Error("other") : null;
    const end = pass(gate, async () => {
      if (error !== null) throw error;
    }).catch(() => undefined);
    await clock.advance(10);
    await end;
  }
}

describe("the gate before the engine", () => {
  it("pauses when more than half of enough operations failed, and says why", async () => {
    await outcomes("E.E.");
    expect(gate.isPaused).toBe(false);
    await outcomes("E");
    expect(pauses).toEqual([{ forMs: 30_000, failed: 3, outcomes: 5, cause: "engine" }]);
  });

  it("does not pause for few failures, old ones, or those that do not speak against the engine", async () => {
    await outcomes("EEE");
    expect(gate.isPaused).toBe(false);
    await clock.advance(60_000);
    await outcomes("Exxxxxxx");
    expect(gate.isPaused).toBe(false);
  });

  it("lets everybody wait until one probe succeeds, with longer pauses in between up to a limit", async () => {
    await outcomes("EEEE");
    const ran: number[] = [];
    const waits = [1, 2, 3].map((one) => pass(gate, async () => ran.push(one)));
    await clock.advance(29_900);
    expect(probes).toBe(0);
    await clock.advance(200);
    expect(probes).toBe(1);
    await clock.advance(60_000);
    expect(probes).toBe(2);
    isEngineWell = true;
    await clock.advance(74_000);
    expect(ran).toEqual([]);
    await clock.advance(2000);
    expect(probes).toBe(3);
    await Promise.all(waits);
    expect(ran).toEqual([1, 2, 3]);
    expect(pauses.map(({ forMs }) => forMs)).toEqual([30_000, 60_000, 75_000]);
    expect(pauses.at(-1)?.cause).toBe("still unwell");
  });

  it("begins anew after a pause: what failed before does not count", async () => {
    await outcomes("EEEE");
    isEngineWell = true;
    const wait = pass(gate, async () => undefined);
    await clock.advance(30_000);
    await wait;
    await outcomes("EE");
    expect(gate.isPaused).toBe(false);
    await outcomes("E");
    expect(pauses.map(({ forMs }) => forMs)).toEqual([30_000, 30_000]);
  });

  it("leaves no timer when nobody waits any more, and goes on with the pause for the next", async () => {
    await outcomes("EEEE");
    const leaving = new AbortController();
    const wait = pass(gate, async () => "ran", leaving.signal);
    await clock.advance(20_000);
    expect(clock.sleeping).toBe(1);
    leaving.abort(new Error("leaves"));
    await expect(wait).rejects.toThrow("leaves");
    await settle();
    expect(clock.sleeping).toBe(0);
    isEngineWell = true;
    await clock.advance(9900);
    const next = pass(gate, async () => "ran");
    await clock.advance(200);
    expect(await next).toBe("ran");
    expect(clock.sleeping).toBe(0);
  });

  it("does not count operations that end during a pause", async () => {
    const late = pass(gate, async () => {
      await clock.sleep(1000, never);
      throw new Error("engine");
    }).catch((error: Error) => error.message);
    await clock.advance(10);
    await outcomes("EEEE");
    await clock.advance(1000);
    expect(await late).toBe("engine");
    expect(pauses).toHaveLength(1);
  });

  it("starts no more operations in a second than it may", async () => {
    const slow = new EngineGate({
      clock,
      random: () => 0,
      probe: async () => undefined,
      limits: { startsPerSecond: 4 },
    });
    const starts: number[] = [];
    const all = Array.from({ length: 6 }, () => pass(slow, async () => starts.push(clock.now())));
    await clock.advance(2000);
    await Promise.all(all);
    expect(starts).toEqual([0, 250, 500, 750, 1000, 1250]);
    expect(clock.sleeping).toBe(0);
  });
});
