import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { Gate } from "../../../../src/lib/time/gate.js";

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
