import { expect, it } from "vitest";
import { Capacity } from "../../../../../src/services/serve/sandboxes/capacity.js";

const { signal } = new AbortController();
const full = { code: "serve.busy", status: 429 };

it("there are so many places and no more, and one that is given back is free again", async () => {
  const capacity = new Capacity({ maxPlaces: 2, maxPerClient: 2, maxWaiting: 0 });
  const first = await capacity.take("a", { waitMs: 0, signal });
  await capacity.take("b", { waitMs: 0, signal });
  await expect(capacity.take("a", { waitMs: 0, signal })).rejects.toMatchObject(full);
  first[Symbol.dispose]();
  first[Symbol.dispose]();
  expect(capacity.takenCount).toBe(1);
  await capacity.take("c", { waitMs: 0, signal });
  await expect(capacity.take("c", { waitMs: 0, signal })).rejects.toMatchObject(full);
});

it("a client has only its share, and does not keep others waiting that have some left", async () => {
  const capacity = new Capacity({ maxPlaces: 2, maxPerClient: 1, maxWaiting: 2 });
  const ofA = await capacity.take("a", { waitMs: 0, signal });
  await expect(capacity.take("a", { waitMs: 0, signal })).rejects.toMatchObject(full);
  const ofB = await capacity.take("b", { waitMs: 0, signal });
  const order: string[] = [];
  const waitingA = capacity.take("a", { waitMs: 60_000, signal }).then(() => order.push("a"));
  const waitingC = capacity.take("c", { waitMs: 60_000, signal }).then(() => order.push("c"));
  await expect(capacity.take("d", { waitMs: 60_000, signal })).rejects.toMatchObject(full);
  ofB[Symbol.dispose]();
  await waitingC;
  expect(order).toEqual(["c"]);
  ofA[Symbol.dispose]();
  await waitingA;
  expect(capacity.takenCount).toBe(2);
});

it("whoever gives up waiting, or waits too long, takes no place", async () => {
  const capacity = new Capacity({ maxPlaces: 1, maxPerClient: 1, maxWaiting: 2 });
  const place = await capacity.take("a", { waitMs: 0, signal });
  const gone = new AbortController();
  const waiting = capacity.take("b", { waitMs: 60_000, signal: gone.signal });
  gone.abort(new Error("gone"));
  await expect(waiting).rejects.toThrow("gone");
  await expect(capacity.take("b", { waitMs: 5, signal })).rejects.toMatchObject(full);
  place[Symbol.dispose]();
  expect(capacity.takenCount).toBe(0);
  // The turn comes at the very moment of the abort.
  const held = await capacity.take("a", { waitMs: 0, signal });
  const late = new AbortController();
  const unlucky = capacity.take("b", { waitMs: 60_000, signal: late.signal });
  held[Symbol.dispose]();
  late.abort(new Error("late"));
  const taken = await unlucky.catch(() => null);
  taken?.[Symbol.dispose]();
  expect(capacity.takenCount).toBe(0);
});

it("nobody waits for a place of a service that is being ended", async () => {
  const drain = new AbortController();
  const capacity = new Capacity({ maxPlaces: 1, maxPerClient: 1, maxWaiting: 2 }, { drain: drain.signal });
  const place = await capacity.take("a", { waitMs: 0, signal });
  const waiting = capacity.take("b", { waitMs: 60_000, signal });
  const ending = { code: "serve.busy", status: 503, message: "the service is ending" };
  drain.abort();
  await expect(waiting).rejects.toMatchObject(ending);
  await expect(capacity.take("b", { waitMs: 60_000, signal })).rejects.toMatchObject(ending);
  place[Symbol.dispose]();
  expect(capacity.takenCount).toBe(0);
});

it("what is there already has a place, even if there is none, which counts until it is given back", async () => {
  const capacity = new Capacity({ maxPlaces: 1, maxPerClient: 1, maxWaiting: 0 });
  const held = [capacity.hold("a"), capacity.hold("a")];
  expect(capacity.takenCount).toBe(2);
  held[0]?.[Symbol.dispose]();
  await expect(capacity.take("b", { waitMs: 0, signal })).rejects.toMatchObject(full);
  held[1]?.[Symbol.dispose]();
  await capacity.take("b", { waitMs: 0, signal });
});
