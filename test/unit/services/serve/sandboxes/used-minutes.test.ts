import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { MinutesFile } from "../../../../../src/services/serve/sandboxes/minutes-file.js";
import { UsedMinutes } from "../../../../../src/services/serve/sandboxes/used-minutes.js";
import { temporaryDirectory } from "../../../../support/sandbox.js";

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

it("the next service goes on counting on the same day, whatever the names of its clients", async () => {
  await using directory = await temporaryDirectory();
  const path = join(directory.path, "serve", "minutes.json");
  let now = NOON;
  const warnings: unknown[] = [];
  const open = () => {
    const file = new MinutesFile(path, { onWarning: (error) => warnings.push(error) });
    const minutes = new UsedMinutes({
      ...{ limitOf: () => 10, onUsedUp: () => undefined, now: () => now, before: file.before },
      onCount: () => file.keep(() => minutes.countedDay),
    });
    return { minutes, file };
  };
  const first = open();
  for (const client of ["__proto__", "a"]) first.minutes.begin(client);
  now += 8 * MINUTE_MS;
  await first.file.close();
  const second = open();
  expect(["__proto__", "a", "b"].map((client) => second.minutes.usedBy(client))).toEqual([8, 8, 0]);
  const place = second.minutes.begin("a");
  now += 2 * MINUTE_MS;
  expect(() => second.minutes.refuseUsedUp("a")).toThrow(expect.objectContaining({ code: "serve.quota" }));
  second.minutes.refuseUsedUp("__proto__");
  place[Symbol.dispose]();
  await second.file.close();
  now += 24 * 60 * MINUTE_MS;
  expect(open().minutes.usedBy("a")).toBe(0);
  expect(warnings).toEqual([]);
});

it.each(["", "{", '{"format":2,"day":1,"clients":[]}', '{"format":1,"day":1,"clients":[["a",-5]]}'])(
  "a file of minutes that contains %j is as none",
  async (text) => {
    await using directory = await temporaryDirectory();
    const path = join(directory.path, "minutes.json");
    writeFileSync(path, text);
    expect(new MinutesFile(path, { onWarning: () => undefined }).before).toBeNull();
  },
);

it("minutes that cannot be kept are said once", async () => {
  await using directory = await temporaryDirectory();
  const path = join(directory.path, "minutes.json");
  mkdirSync(path);
  const warnings: unknown[] = [];
  const file = new MinutesFile(path, { onWarning: (error) => warnings.push(error) });
  for (let count = 0; count < 2; count++) {
    file.keep(() => ({ day: 1, usedMs: new Map([["a", 1]]) }));
    await file.close();
  }
  expect(warnings).toEqual([expect.objectContaining({ code: "store.failed" })]);
});
