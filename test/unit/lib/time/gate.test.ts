import { getEventListeners } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { Gate, someAtOnce } from "../../../../src/lib/time/gate.js";

it("lets a few through at a time, and the others in the order in which they came", async () => {
  const gate = new Gate();
  const order: number[] = [];
  let inside = 0;
  let most = 0;
  const run = (number: number) => async () => {
    order.push(number);
    most = Math.max(most, ++inside);
    await sleep(5);
    inside--;
  };
  await Promise.all(Array.from({ length: 20 }, (_, number) => gate.pass(run(number), { width: 3 })));
  expect(most).toBe(3);
  expect(order).toEqual(Array.from({ length: 20 }, (_, number) => number));
  expect(gate.isIdle).toBe(true);
});

it("is left by what fails", async () => {
  const gate = new Gate();
  const failure = gate.pass(() => Promise.reject(new Error("oops")), { width: 1 });
  const next = gate.pass(() => Promise.resolve("next"), { width: 1 });
  await expect(failure).rejects.toThrow("oops");
  expect(await next).toBe("next");
});

it("gives up who is aborted while waiting, and nobody else", async () => {
  const gate = new Gate();
  const stop = new AbortController();
  const reason = new Error("enough");
  let open: () => void = () => undefined;
  const first = gate.pass(() => new Promise<void>((resolve) => (open = resolve)), { width: 1 });
  const second = gate.pass(() => Promise.resolve("second"), { width: 1, signal: stop.signal });
  const third = gate.pass(() => Promise.resolve("third"), { width: 1 });
  stop.abort(reason);
  await expect(second).rejects.toBe(reason);
  open();
  expect(await third).toBe("third");
  await first;
  await expect(gate.pass(() => Promise.resolve(), { width: 1, signal: stop.signal })).rejects.toBe(reason);
  expect(gate.isIdle).toBe(true);
});

it("passes a turn on when its owner is aborted in the same moment", async () => {
  const gate = new Gate();
  const stop = new AbortController();
  const first = gate.pass(() => sleep(5), { width: 1 });
  const second = gate.pass(() => Promise.resolve("second"), { width: 1, signal: stop.signal });
  const third = gate.pass(() => Promise.resolve("third"), { width: 1 });
  await first.then(() => stop.abort(new Error("late")));
  await Promise.allSettled([second]);
  expect(await third).toBe("third");
  expect(gate.isIdle).toBe(true);
});

describe("some of many items at once", () => {
  it("are so many as are asked for, and the results are in the order of the items", async () => {
    let [running, most] = [0, 0];
    const run = async (item: number, index: number) => {
      most = Math.max(most, ++running);
      await new Promise((resolve) => setImmediate(resolve));
      running--;
      return [item, index];
    };
    expect(await someAtOnce([5, 6, 7, 8, 9], run, { width: 2 })).toEqual(
      [5, 6, 7, 8, 9].map((item, index) => [item, index]),
    );
    expect(most).toBe(2);
    expect(await someAtOnce([], run, { width: 2 })).toEqual([]);
  });

  it("are begun no more after a failure, and those that run come to their end first", async () => {
    const done: number[] = [];
    let fail: (error: Error) => void = () => undefined;
    const failing = new Promise<never>((_, reject) => {
      fail = reject;
    });
    const run = async (item: number) => {
      if (item === 0) return await failing;
      fail(new Error("no room"));
      await new Promise((resolve) => setImmediate(resolve));
      done.push(item);
    };
    await expect(someAtOnce([0, 1, 2, 3], run, { width: 2 })).rejects.toThrow("no room");
    expect(done).toEqual([1]);
  });

  it("are begun no more after an abort, for which not every one of them listens", async () => {
    const abort = new AbortController();
    const { signal } = abort;
    const begun: number[] = [];
    const run = async (item: number) => {
      begun.push(item);
      expect(getEventListeners(signal, "abort")).toEqual([]);
      if (item === 3) abort.abort(new Error("stop"));
    };
    const items = Array.from({ length: 1000 }, (_, item) => item);
    await expect(someAtOnce(items, run, { width: 1, signal })).rejects.toThrow("stop");
    expect(begun).toEqual([0, 1, 2, 3]);
  });
});
