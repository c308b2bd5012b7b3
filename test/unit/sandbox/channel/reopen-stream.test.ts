import { syncBuiltinESMExports } from "node:module";
import { PassThrough } from "node:stream";
import timers from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it, type Mock, vi } from "vitest";
import { BrigError } from "../../../../src/errors.js";
import {
  dialInTime,
  reopenStream,
  SilentStream,
  type StreamOpener,
} from "../../../../src/sandbox/channel/reopen-stream.js";
import type { EngineStream } from "../../../../src/sandbox/docker/engine-types.js";

const never = () => new Promise<never>(() => undefined);
const broke = new Error("it broke");

/** The waits between attempts. They go by the clock of the test, as all timers do here. */
let waits: number[] = [];
beforeEach(() => {
  waits = [];
  vi.useFakeTimers();
  vi.spyOn(timers, "setTimeout").mockImplementation(async <T>(ms = 0, value?: T) => {
    waits.push(ms);
    return await new Promise<T>((resolve) => setTimeout(() => resolve(value as T), ms));
  });
  syncBuiltinESMExports();
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  syncBuiltinESMExports();
});

const advance = async (ms: number) => void (await vi.advanceTimersByTimeAsync(ms));

const MOST_ATTEMPTS = 2_000;

interface Reopening {
  /** Undefined until it has one. */
  result: BrigError | null | undefined;
  failure: unknown;
  connect: Mock<StreamOpener["connect"]>;
  diagnose: Mock<StreamOpener["diagnose"]>;
}

/** A stream that is being opened again. By default the container runs, and no attempt to connect succeeds. */
function reopening(given: Partial<StreamOpener> = {}, reason: Error = broke) {
  const connect = vi.fn(given.connect ?? (() => Promise.reject(new Error("refused"))));
  const diagnose = vi.fn(given.diagnose ?? (async () => "runs" as const));
  const { tryForMs = 5_000 } = given;
  let attempts = 0;
  const isGivenUp = () => {
    // A loop that does not wait would otherwise never end.
    if (++attempts > MOST_ATTEMPTS) throw new Error("too many attempts");
    return given.isGivenUp?.() ?? false;
  };
  const all: Reopening = { result: undefined, failure: undefined, connect, diagnose };
  reopenStream(reason, { tryForMs, connect, diagnose, isGivenUp }).then(
    (result) => {
      all.result = result;
    },
    (error: unknown) => {
      all.failure = error;
    },
  );
  return all;
}

describe("a stream that broke", () => {
  it("is opened again as soon as an attempt succeeds, and no timer is left", async () => {
    let failures = 2;
    const connect = async () => {
      if (failures-- > 0) throw new Error("refused");
    };
    const stream = reopening({ connect });
    await advance(59);
    expect(stream.result).toBeUndefined();
    await advance(1);
    expect(stream.result).toBeNull();
    expect(stream.connect).toHaveBeenCalledTimes(3);
    expect(waits).toEqual([20, 40]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("is tried ever less often, down to once in a second, and the engine hears since when it is broken", async () => {
    // The clock of this process did not begin with the stream.
    await advance(500);
    const stream = reopening({ tryForMs: 60_000 });
    await advance(3_300);
    expect(waits).toEqual([20, 40, 80, 160, 320, 640, 1000, 1000, 1000]);
    expect(stream.diagnose.mock.calls.slice(0, 4)).toEqual([[0], [20], [60], [140]]);
  });

  it("is given up after its time, with what failed last", async () => {
    let attempt = 0;
    const stream = reopening({ connect: () => Promise.reject(new Error(`refused ${++attempt}`)) });
    // The attempt that is made before the time is over still counts.
    await advance(5_259);
    expect(stream.result).toBeUndefined();
    await advance(1);
    expect(stream.result).toMatchObject({
      code: "sandbox.gone",
      reason: "engine",
      message: expect.stringContaining("could not be opened again"),
      hint: expect.stringContaining("brig doctor"),
      cause: new Error(`refused ${attempt}`),
    });
    expect(vi.getTimerCount()).toBe(0);
  });

  it("is not opened where nobody needs it any more", async () => {
    const stream = reopening({ isGivenUp: () => true });
    await advance(0);
    expect(stream.result).toBeNull();
    expect(stream.diagnose).not.toHaveBeenCalled();
    let isGivenUp = false;
    const later = reopening({ isGivenUp: () => isGivenUp });
    await advance(100);
    isGivenUp = true;
    await advance(1_000);
    expect(later.result).toBeNull();
  });

  it("because the runner broke its protocol is not opened again", async () => {
    const invalid = new BrigError("no", { code: "protocol.invalid" });
    const stream = reopening({}, invalid);
    await advance(0);
    expect(stream.result).toBe(invalid);
    expect(stream.diagnose).not.toHaveBeenCalled();
    const later = reopening({ connect: () => Promise.reject(invalid) });
    await advance(20);
    expect(later.result).toBe(invalid);
    expect(later.connect).toHaveBeenCalledTimes(1);
  });

  it("whose container has ended is given up at once, for that reason", async () => {
    const killed = new BrigError("no", { code: "sandbox.gone", reason: "killed" });
    const stream = reopening({ diagnose: async () => killed });
    await advance(0);
    expect(stream.result).toBe(killed);
    expect(stream.connect).not.toHaveBeenCalled();
  });

  it("is waited for where the engine cannot say how the container is, until its time is over", async () => {
    const unknown = new BrigError("no", { code: "sandbox.gone", reason: "engine" });
    const stream = reopening({ diagnose: async () => unknown });
    await advance(4_999);
    expect(stream.result).toBeUndefined();
    await advance(1_000);
    expect(stream.result).toBe(unknown);
    expect(stream.connect).not.toHaveBeenCalled();
  });

  it("is opened once the engine answers again", async () => {
    let failures = 2;
    const diagnose = async () => {
      if (failures-- > 0) throw new Error("no engine");
      return "runs" as const;
    };
    const stream = reopening({ diagnose, connect: async () => undefined });
    await advance(60);
    expect(stream.result).toBeNull();
  });

  it("of an engine that fails says so, with how it failed last", async () => {
    const stream = reopening({ diagnose: () => Promise.reject(new Error("no engine")) });
    await advance(6_000);
    expect(stream.result).toMatchObject({
      code: "sandbox.gone",
      reason: "engine",
      message: expect.stringContaining("stopped answering"),
      hint: expect.stringContaining("brig doctor"),
      cause: new Error("no engine"),
    });
  });

  it("of an engine that says nothing is asked about again after ten seconds", async () => {
    const stream = reopening({ diagnose: never, tryForMs: 30_000 });
    await advance(10_019);
    expect(stream.diagnose).toHaveBeenCalledTimes(1);
    await advance(1);
    expect(stream.diagnose).toHaveBeenCalledTimes(2);
    await advance(30_000);
    expect(stream.result).toMatchObject({
      code: "sandbox.gone",
      cause: expect.objectContaining({ message: "the engine did not answer" }),
    });
  });
});

describe("a stream to a container that is paused", () => {
  it("is waited for as long as that takes, and has all of its time afterwards", async () => {
    let isPaused = true;
    const diagnose = async () => (isPaused ? ("paused" as const) : ("runs" as const));
    const stream = reopening({ diagnose });
    await advance(60_260);
    expect(stream.result).toBeUndefined();
    expect(stream.connect).not.toHaveBeenCalled();
    isPaused = false;
    await advance(5_999);
    expect(stream.result).toBeUndefined();
    expect(stream.connect).toHaveBeenCalled();
    await advance(1_000);
    expect(stream.result).toMatchObject({ message: expect.stringContaining("could not be opened again") });
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe("a stream to a container that is paused for longer than it is tried", () => {
  it("is tried again afterwards", async () => {
    let isPaused = true;
    const diagnose = async () => (isPaused ? ("paused" as const) : ("runs" as const));
    const stream = reopening({ diagnose, tryForMs: 500, connect: async () => undefined });
    await advance(10_000);
    isPaused = false;
    await advance(1_000);
    expect(stream.result).toBeNull();
  });
});

describe("a stream on which nothing came any more", () => {
  it.each([
    [1_000, 300_000],
    [400_000, 400_000],
  ])(
    "is tried for five minutes where others are tried for %i ms, and never shorter",
    async (tryForMs, ms) => {
      /** The engine answers at this time, and what is decided then depends on whether the stream's time is over. */
      const answeringAt = (atMs: number) => async (brokenForMs: number) => {
        if (brokenForMs > ms - 5_000 && brokenForMs < atMs)
          await new Promise((resolve) => setTimeout(resolve, atMs - brokenForMs));
        return "runs" as const;
      };
      const early = reopening({ tryForMs, diagnose: answeringAt(ms - 1) }, new SilentStream());
      const late = reopening({ tryForMs, diagnose: answeringAt(ms + 1) }, new SilentStream());
      await advance(ms + 2);
      expect(early.result).toBeUndefined();
      expect(late.result).toMatchObject({ code: "sandbox.gone" });
    },
  );
});

describe("a stream that is being opened", () => {
  it("is there once the engine has opened it", async () => {
    const stream = new PassThrough();
    expect(await dialInTime(async () => ({ stream }))).toEqual({ stream });
    expect(stream.destroyed).toBe(false);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("is waited for 15 seconds, and closed if it opens later, whatever becomes of it", async () => {
    let open: (stream: EngineStream) => void = () => undefined;
    let failure: unknown;
    dialInTime(() => new Promise((resolve) => (open = resolve))).catch((error: unknown) => {
      failure = error;
    });
    await advance(14_999);
    expect(failure).toBeUndefined();
    await advance(1);
    expect(failure).toMatchObject({ message: expect.stringContaining("no stream in time") });
    const stream = new PassThrough();
    open({ stream });
    await advance(0);
    expect(stream.destroyed).toBe(true);
    expect(stream.emit("error", new Error("late"))).toBe(true);
  });

  it("that fails after that is no failure that nobody handles", async () => {
    let fail: (error: Error) => void = () => undefined;
    const dialling = dialInTime(
      () =>
        new Promise((_, reject) => {
          fail = reject;
        }),
    ).catch(() => "given up");
    await advance(15_000);
    expect(await dialling).toBe("given up");
    fail(new Error("late"));
    await advance(0);
  });
});
