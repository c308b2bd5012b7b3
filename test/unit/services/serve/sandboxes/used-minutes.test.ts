import { expect, it, vi } from "vitest";
import { UsedMinutes } from "../../../../../src/services/serve/sandboxes/used-minutes.js";

const MINUTE_MS = 60_000;
const NOON = Date.UTC(2030, 0, 1, 12);

it("the minutes of all sandboxes of a client count, and it has new ones the next day", () => {
  let now = NOON;
  const minutes = new UsedMinutes({ limitOf: () => 10, onUsedUp: () => undefined, now: () => now });
  const [first, second] = [minutes.begin("a"), minutes.begin("a")];
  now += 3 * MINUTE_MS;
  expect(minutes.usedBy("a")).toBe(6);
  second[Symbol.dispose]();
  second[Symbol.dispose]();
  now += 3 * MINUTE_MS;
  expect(minutes.usedBy("a")).toBe(9);
  minutes.refuseUsedUp("a");
  now += MINUTE_MS;
  expect(() => minutes.refuseUsedUp("a")).toThrow(
    expect.objectContaining({
      ...{ code: "serve.quota", status: 429 },
      headers: { "retry-after": `${12 * 3600 - 7 * 60}` },
    }),
  );
  minutes.refuseUsedUp("b");
  // What began yesterday counts from midnight on.
  now = NOON + 12 * 60 * MINUTE_MS + 2 * MINUTE_MS;
  expect(minutes.usedBy("a")).toBe(2);
  minutes.refuseUsedUp("a");
  first[Symbol.dispose]();
});

it("whoever has used all is told while the sandboxes still run, and only then", () => {
  vi.useFakeTimers({ now: NOON });
  try {
    const used: string[] = [];
    let limit = 4;
    const minutes = new UsedMinutes({ limitOf: () => limit, onUsedUp: (client) => used.push(client) });
    const places = [minutes.begin("a"), minutes.begin("a")];
    vi.advanceTimersByTime(MINUTE_MS);
    // The operator gives it more.
    limit = 6;
    vi.advanceTimersByTime(1.5 * MINUTE_MS);
    expect(used).toEqual([]);
    vi.advanceTimersByTime(0.5 * MINUTE_MS);
    expect(used).toEqual(["a"]);
    for (const place of places) place[Symbol.dispose]();
    vi.advanceTimersByTime(10 * MINUTE_MS);
    expect(used).toEqual(["a"]);
  } finally {
    vi.useRealTimers();
  }
});
