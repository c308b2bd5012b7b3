import { describe, expect, it } from "vitest";
import { Admission, measureMachine } from "../../../src/batch/runs/admission/admission.js";
import {
  type BatchWait,
  openAttemptAdmission,
  requireRoomFor,
} from "../../../src/batch/runs/admission/attempt-admission.js";
import type { AttemptFailure, AttemptResult } from "../../../src/batch/runs/results/attempt-result.js";
import { systemClock } from "../../../src/lib/time/clock.js";
import { harmedEngine, testEngine } from "../../support/engine.js";
import { ManualClock } from "../../support/manual-clock.js";
import { engineGone, infrastructure, playedResult, playedTask } from "../../support/played-attempts.js";

describe("admission to a real engine's machine", () => {
  it("lets in what fits, and counts it", async () => {
    const engine = await testEngine();
    const admission = new Admission({
      measure: async () => await measureMachine(engine),
      rules: { maxAtOnce: 2, cpuOvercommit: 4, reservedDiskBytes: 0, reservedMemoryBytes: 0 },
      clock: systemClock,
    });
    const need = { cpus: 0, memoryBytes: 0, diskBytes: 0 };
    const places = [await admission.enter(need), await admission.enter(need)];
    const third = admission.enter(need);
    expect(admission.waiting).toBe(1);
    for (const place of places) place[Symbol.dispose]();
    (await third)[Symbol.dispose]();
  });
});

describe("admission of the attempts of a run", () => {
  it("pauses when the engine is gone, says so, and asks it again", async () => {
    await using harmed = await harmedEngine({ images: [] });
    const clock = new ManualClock();
    const waits: (BatchWait | null)[] = [];
    const admission = openAttemptAdmission(harmed.engine, {
      maxAtOnce: 4,
      clock,
      gateLimits: { minOutcomes: 3, startsPerSecond: 1_000_000 },
      onWait: (wait) => waits.push(wait),
    });
    const task = playedTask("task");
    const leaving = new AbortController();
    const attempt = async (given: Partial<AttemptResult>) => {
      await clock.advance(1);
      (await admission.enter(task, leaving.signal)).ended(playedResult(given));
    };
    await attempt({});
    await attempt({ ...infrastructure, failure: { ...engineGone, class: "image-failed" } });
    expect(waits).toEqual([]);
    await harmed.stop();
    for (let round = 0; round < 3; round++) await attempt(infrastructure);
    const pause = { kind: "engine", failed: 3, outcomes: 5, message: "the engine went away" };
    expect(waits).toMatchObject([pause]);
    const next = admission.enter(task, leaving.signal);
    await clock.advance(30_000);
    await expect.poll(() => waits.length).toBe(2);
    expect(waits[1]).toMatchObject({ kind: "engine", message: expect.stringContaining("does not answer") });
    leaving.abort(new Error("leaves"));
    await expect(next).rejects.toThrow("leaves");
  });

  it("pauses when the model's endpoint fails for all, and lets one attempt try it again", async () => {
    const clock = new ManualClock();
    const waits: (BatchWait | null)[] = [];
    const admission = openAttemptAdmission(await testEngine(), {
      maxAtOnce: 4,
      clock,
      gateLimits: { startsPerSecond: 1_000_000 },
      onWait: (wait) => waits.push(wait),
    });
    const enter = async (signal = new AbortController().signal) =>
      await admission.enter(playedTask("task"), signal);
    const failure: AttemptFailure = { class: "model-endpoint", message: "no such key", evidence: [] };
    for (let round = 0; round < 5; round++) {
      (await enter()).ended(playedResult({ ...infrastructure, failure }));
      await clock.advance(1);
    }
    expect(waits).toMatchObject([{ kind: "model", failed: 5, message: "no such key" }]);

    // Whoever leaves before its attempt has begun keeps nobody else from trying.
    await clock.advance(30_000);
    const leaving = new AbortController();
    const first = enter(leaving.signal);
    leaving.abort(new Error("leaves"));
    await expect(first).rejects.toThrow("leaves");
    const admitted = await enter();
    expect(waits.at(-1)).toMatchObject({ kind: "model", forMs: 0 });
    const next = enter();
    admitted.ended(null);
    await clock.advance(1);
    (await next).ended(playedResult());
    expect(waits.at(-1)).toBeNull();
  });

  it("refuses tasks that no attempt could have room for", async () => {
    const engine = await testEngine();
    const { cpus } = await engine.info();
    const { environment } = playedTask("small");
    const limits = { cpus: cpus + 1, memoryMb: null, storageMb: null };
    const large = playedTask("large", { environment: { ...environment, limits } });
    await expect(requireRoomFor(engine, [playedTask("small"), large])).rejects.toMatchObject({
      code: "usage.invalid",
      message: expect.stringMatching(/too small for these tasks:\n {2}large asks for \d+ processors/),
    });
  });
});
