import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { AnySignal } from "../../../../src/lib/time/any-signal.js";
import { beforeAbort } from "../../../../src/lib/time/before-abort.js";
import { TimeLimit } from "../../../../src/lib/time/time-limit.js";
import { whileCollecting } from "../../../support/garbage.js";

const never = () => new Promise<never>(() => undefined);
const listeners = (signal: AbortSignal) => getEventListeners(signal, "abort").length;

describe("a time limit", () => {
  it("ends a wait with a TimeoutError, though nobody else holds it", async () => {
    using limit = new TimeLimit(100);
    await expect(whileCollecting(() => beforeAbort(never(), limit.signal))).rejects.toMatchObject({
      name: "TimeoutError",
    });
    expect(limit.isOver).toBe(true);
  });

  it("passes on the reason of the signal it was given, also of one that nobody holds", async () => {
    const reason = new Error("enough");
    const stop = new AbortController();
    using limit = new TimeLimit(60_000, stop.signal);
    stop.abort(reason);
    expect(limit.signal.reason).toBe(reason);
    expect(limit.isOver).toBe(false);
    using other = new TimeLimit(60_000, AbortSignal.timeout(100));
    await expect(whileCollecting(() => beforeAbort(never(), other.signal))).rejects.toMatchObject({
      name: "TimeoutError",
    });
    expect(other.isOver).toBe(false);
  });

  it("is aborted from the start where the signal was", () => {
    using limit = new TimeLimit(60_000, AbortSignal.abort("before"));
    expect(limit.signal.reason).toBe("before");
  });

  it("never comes with null, and a time beyond what timers take does not come at once", async () => {
    using none = new TimeLimit(null);
    using long = new TimeLimit(1e12);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect([none.signal.aborted, long.signal.aborted]).toEqual([false, false]);
  });

  it("leaves nothing behind once the wait is over", async () => {
    const stop = new AbortController();
    const limit = new TimeLimit(20, stop.signal);
    expect(listeners(stop.signal)).toBe(1);
    limit[Symbol.dispose]();
    expect(listeners(stop.signal)).toBe(0);
    stop.abort();
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect([limit.signal.aborted, limit.isOver]).toEqual([false, false]);
  });
});

describe("any of several signals", () => {
  it("is the first to abort, and lets go of all when disposed of", () => {
    const [one, two] = [new AbortController(), new AbortController()];
    const either = new AnySignal([undefined, one.signal, two.signal]);
    const { signal } = either;
    two.abort("two");
    one.abort("one");
    expect(signal.reason).toBe("two");
    either[Symbol.dispose]();
    expect([listeners(one.signal), listeners(two.signal)]).toEqual([0, 0]);
  });

  it("is followed by others, until each of them is disposed of", () => {
    const stop = new AbortController();
    const first = new AnySignal([stop.signal]);
    const [second, third, late] = [1, 2, 3].map(() => new AnySignal([first.signal, undefined]));
    late?.[Symbol.dispose]();
    expect(listeners(stop.signal)).toBe(1);
    stop.abort("over");
    expect([first, second, third].map((one) => one?.signal.reason)).toEqual(["over", "over", "over"]);
    expect(late?.signal.aborted).toBe(false);
    expect(new AnySignal([second?.signal]).signal.reason).toBe("over");
  });

  it("can be aborted by itself, which leaves its sources alone", () => {
    const stop = new AbortController();
    const [one, other] = [new AnySignal([stop.signal]), new AnySignal([stop.signal])];
    one.abort("left");
    expect([one.signal.reason, other.signal.aborted, stop.signal.aborted]).toEqual(["left", false, false]);
    one[Symbol.dispose]();
    stop.abort("stopped");
    expect([one.signal.reason, other.signal.reason]).toEqual(["left", "stopped"]);
  });

  it("may follow one signal any number of times without a warning", async () => {
    const warnings: Error[] = [];
    const note = (warning: Error) => warnings.push(warning);
    process.on("warning", note);
    const stop = new AbortController();
    const many = Array.from({ length: 50 }, () => new AnySignal([stop.signal]));
    await new Promise((resolve) => setTimeout(resolve, 10));
    for (const one of many) one[Symbol.dispose]();
    process.off("warning", note);
    expect(warnings).toEqual([]);
    expect(listeners(stop.signal)).toBe(0);
  });
});
