import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, it, vi } from "vitest";
import { afterLivedTime } from "../../../../src/lib/time/lived-time.js";

afterEach(() => {
  vi.useRealTimers();
});

describe("a timer of lived time", () => {
  it("calls back after its time, in seconds and in parts of one", async () => {
    vi.useFakeTimers();
    const callback = vi.fn();
    afterLivedTime(2500, callback);
    await vi.advanceTimersByTimeAsync(2499);
    expect(callback).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    expect(callback).toHaveBeenCalledOnce();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(callback).toHaveBeenCalledOnce();
  });

  it("can be cancelled at any step", async () => {
    vi.useFakeTimers();
    const callback = vi.fn();
    const timer = afterLivedTime(2500, callback);
    await vi.advanceTimersByTimeAsync(1200);
    timer.cancel();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(callback).not.toHaveBeenCalled();
  });

  it("does not count the time in which nothing ran", async () => {
    const callback = vi.fn();
    const began = performance.now();
    afterLivedTime(200, callback);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1500);
    await sleep(50);
    expect(callback).not.toHaveBeenCalled();
    await vi.waitFor(() => expect(callback).toHaveBeenCalledOnce(), { timeout: 15_000 });
    expect(performance.now() - began).toBeGreaterThan(1650);
  });
});
