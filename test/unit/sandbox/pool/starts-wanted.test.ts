import { expect, it } from "vitest";
import { type PoolState, restMs, startsWanted } from "../../../../src/sandbox/pool.js";

const state: PoolState = { size: 8, ready: 3, waiting: 0, isFilling: false, isResting: false, cores: 4 };

it.each<{ so: string; change: Partial<PoolState>; wanted: number }>([
  { so: "takes half of the processors for what nobody waits for", change: {}, wanted: 2 },
  { so: "takes one processor of one", change: { cores: 1 }, wanted: 1 },
  { so: "starts no more than are missing", change: { cores: 64 }, wanted: 5 },
  { so: "starts only what somebody waits for", change: { ready: 0, waiting: 3 }, wanted: 3 },
  { so: "starts all at once that it is filled with", change: { isFilling: true }, wanted: 5 },
  {
    so: "starts all and one for a caller while it is filled",
    change: { isFilling: true, ready: 0, waiting: 1 },
    wanted: 9,
  },
  { so: "starts nothing that nobody waits for after a failure", change: { isResting: true }, wanted: 0 },
  {
    so: "starts for a caller after a failure, too",
    change: { isResting: true, isFilling: true, waiting: 1 },
    wanted: 1,
  },
  { so: "starts nothing when it is full", change: { ready: 8 }, wanted: 0 },
])("a pool $so", ({ change, wanted }) => {
  expect(startsWanted({ ...state, ...change })).toBe(wanted);
});

it.for([
  [1, 1000],
  [2, 2000],
  [3, 4000],
  [6, 32_000],
  [7, 60_000],
  [2000, 60_000],
] as const)("after %i failures in a row a pool rests for %i ms", ([failures, ms]) => {
  expect(restMs(failures)).toBe(ms);
});
