import { beforeEach, describe, expect, it } from "vitest";
import {
  ModelGate,
  type ModelOutcome,
  type ModelPause,
} from "../../../../../src/batch/runs/admission/attempt-admission.js";
import { ManualClock, settle } from "../../../../support/manual-clock.js";

let clock: ManualClock;
let pauses: ModelPause[];
let resumed: number;
let gate: ModelGate;
const never = new AbortController().signal;
const failed: ModelOutcome = { kind: "failed", cause: "401: no such key" };
const answered: ModelOutcome = { kind: "answered" };
const unknown: ModelOutcome = { kind: "unknown" };

beforeEach(() => {
  clock = new ManualClock();
  pauses = [];
  resumed = 0;
  gate = new ModelGate({
    clock,
    random: () => 0,
    onPause: (pause) => pauses.push(pause),
    onResume: () => resumed++,
  });
});

/** Attempts that start and end one after the other. */
async function outcomes(...all: ModelOutcome[]): Promise<void> {
  for (const outcome of all) (await gate.turn(never)).ended(outcome);
}

/** How many of the callers that wait have been let in. */
function waitingTurns(count: number, signal = never) {
  const admitted: { ended: (outcome: ModelOutcome) => void }[] = [];
  const all = Array.from({ length: count }, async () => {
    admitted.push(await gate.turn(signal));
  });
  return { admitted, all };
}

const fiveFailures = [failed, failed, failed, failed, failed];

describe("the gate before a model's endpoint", () => {
  it("lets everybody in as long as fewer than five in a row fail", async () => {
    await outcomes(failed, failed, failed, failed, answered, failed, failed, failed, failed);
    expect(pauses).toEqual([]);
    expect(resumed).toBe(0);
  });

  it("counts nothing for attempts that never asked the endpoint", async () => {
    await outcomes(failed, failed, unknown, failed, failed, unknown, failed);
    expect(pauses).toEqual([{ failed: 5, forMs: 22_500, cause: "401: no such key" }]);
  });

  it("lets one in after the pause, and the others when it has had an answer", async () => {
    await outcomes(...fiveFailures);
    const { admitted, all } = waitingTurns(3);
    await clock.advance(22_499);
    expect(admitted).toHaveLength(0);
    await clock.advance(1);
    expect(admitted).toHaveLength(1);
    expect(pauses.at(-1)).toEqual({ failed: 5, forMs: 0, cause: "401: no such key" });
    await clock.advance(600_000);
    expect(admitted).toHaveLength(1);
    admitted[0]?.ended(answered);
    await Promise.all(all);
    expect(admitted).toHaveLength(3);
    expect(resumed).toBe(1);
    await outcomes(failed, failed, failed, failed);
    expect(pauses).toHaveLength(2);
  });

  it("waits twice as long after each trial that fails, and five minutes at most", async () => {
    await outcomes(...fiveFailures);
    for (let trial = 0; trial < 6; trial++) {
      await clock.advance(225_000);
      await outcomes(failed);
    }
    const waits = pauses.map(({ forMs }) => forMs).filter((ms) => ms > 0);
    expect(waits).toEqual([22_500, 45_000, 90_000, 180_000, 225_000, 225_000, 225_000]);
    expect(pauses.at(-1)).toMatchObject({ failed: 11 });
  });

  it("lets the next one try when a trial says nothing", async () => {
    await outcomes(...fiveFailures);
    const { admitted, all } = waitingTurns(2);
    await clock.advance(22_500);
    admitted[0]?.ended(unknown);
    await Promise.all(all);
    expect(admitted).toHaveLength(2);
    expect(resumed).toBe(0);
    admitted[1]?.ended(answered);
    expect(resumed).toBe(1);
  });

  it("learns nothing during a pause from attempts that started before it", async () => {
    const early = [await gate.turn(never), await gate.turn(never)];
    await outcomes(...fiveFailures);
    early[0]?.ended(failed);
    early[1]?.ended(answered);
    expect(pauses).toHaveLength(1);
    expect(resumed).toBe(0);
  });

  it("hears of an end once", async () => {
    await outcomes(...fiveFailures);
    await clock.advance(22_500);
    const trial = await gate.turn(never);
    trial.ended(failed);
    trial.ended(answered);
    expect(resumed).toBe(0);
  });

  it("is left by whoever is interrupted, in the pause and during a trial", async () => {
    await outcomes(...fiveFailures);
    const leaving = new AbortController();
    const inPause = gate.turn(leaving.signal);
    leaving.abort(new Error("leaves"));
    await expect(inPause).rejects.toThrow("leaves");
    await clock.advance(22_500);
    const trial = await gate.turn(never);
    const other = new AbortController();
    const meanwhile = gate.turn(other.signal);
    await settle();
    other.abort(new Error("leaves too"));
    await expect(meanwhile).rejects.toThrow("leaves too");
    trial.ended(answered);
    await outcomes(answered);
  });
});
