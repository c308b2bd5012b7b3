import { PassThrough } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { EngineStream } from "../../../../src/docker/engine-types.js";
import { dialInTime, reopenStream } from "../../../../src/sandbox/channel/reopen-stream.js";

const never = () => new Promise<never>(() => undefined);

describe("an engine that says nothing", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it("opens no stream that is waited for without end, and one that opens late is closed", async () => {
    let open: (stream: EngineStream) => void = () => undefined;
    const dialling = dialInTime(() => new Promise((resolve) => (open = resolve)));
    const outcome = expect(dialling).rejects.toThrow("no stream in time");
    await vi.advanceTimersByTimeAsync(20_000);
    await outcome;
    const stream = new PassThrough();
    open({ stream });
    await vi.advanceTimersByTimeAsync(0);
    expect(stream.destroyed).toBe(true);
  });

  it("is asked again how the container is, until the stream's time is over", async () => {
    let asked = 0;
    const diagnose = () => {
      asked++;
      return never();
    };
    const opener = { tryForMs: 30_000, connect: never, diagnose, isGivenUp: () => false };
    const reopened = reopenStream(new Error("it broke"), opener);
    let isOver = false;
    void reopened.then(() => {
      isOver = true;
    });
    while (!isOver) {
      await vi.advanceTimersByTimeAsync(5_000);
      // Between two attempts it waits by the real clock.
      await sleep(20);
    }
    expect(await reopened).toMatchObject({ code: "sandbox.gone", reason: "engine" });
    expect(asked).toBeGreaterThan(1);
  });
});
