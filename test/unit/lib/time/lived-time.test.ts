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
    vi.useFakeTimers();
    const now = vi.spyOn(performance, "now").mockReturnValue(0);
    const callback = vi.fn();
    afterLivedTime(200, callback);
    // The process was stopped for so long that its timer comes 1.3 seconds late.
    now.mockReturnValue(1500);
    await vi.advanceTimersByTimeAsync(200);
    expect(callback).not.toHaveBeenCalled();
    now.mockReturnValue(1700);
    await vi.advanceTimersByTimeAsync(199);
    expect(callback).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    expect(callback).toHaveBeenCalledOnce();
  });
});
