import { beforeEach, describe, expect, it } from "vitest";
import {
  Admission,
  type Machine,
  type Need,
  requireRoom,
  type Shortage,
} from "../../../../../src/batch/runs/admission/admission.js";
import { ManualClock, settle } from "../../../../support/manual-clock.js";

const need = (memoryBytes: number): Need => ({ cpus: 1, memoryBytes, diskBytes: 0 });

let clock: ManualClock;
let machine: Machine;
let reasons: Shortage[];
let admission: Admission;
let entered: string[];

beforeEach(() => {
  clock = new ManualClock();
  machine = { cpus: 100, memoryBytes: 100, availableMemoryBytes: 100, freeDiskBytes: 100 };
  reasons = [];
  entered = [];
  admission = new Admission({
    measure: async () => machine,
    rules: { maxAtOnce: 3, cpuOvercommit: 1, reservedMemoryBytes: 0, reservedDiskBytes: 10 },
    clock,
    onWait: (shortage) => reasons.push(shortage),
  });
});

async function enter(name: string, memoryBytes: number, signal?: AbortSignal): Promise<Disposable> {
  const place = await admission.enter(need(memoryBytes), signal);
  entered.push(name);
  return place;
}

describe("admission", () => {
  it("lets no more in than may run at once, and the next when one has ended", async () => {
    const places = ["a", "b", "c", "d"].map((name) => enter(name, 1));
    await settle();
    expect(entered).toEqual(["a", "b", "c"]);
    expect(reasons).toEqual([{ kind: "concurrency", running: 3 }]);
    const first = await places[0];
    first?.[Symbol.dispose]();
    first?.[Symbol.dispose]();
    await settle();
    expect(entered).toEqual(["a", "b", "c", "d"]);
    expect(clock.sleeping).toBe(0);
  });

  it("lets nobody pass a large one that waits for room", async () => {
    const first = enter("first", 50);
    const large = enter("large", 80);
    const small = enter("small", 10);
    await settle();
    expect(entered).toEqual(["first"]);
    expect(reasons).toEqual([{ kind: "memory", needed: 80, left: 50 }]);
    (await first)[Symbol.dispose]();
    await settle();
    expect(entered).toEqual(["first", "large", "small"]);
    await Promise.all([large, small]);
  });

  it("measures again while somebody waits, and only then", async () => {
    machine = { ...machine, freeDiskBytes: 10 };
    const place = enter("a", 1);
    await clock.advance(5000);
    expect(entered).toEqual([]);
    expect(reasons).toEqual([{ kind: "disk", needed: 0, left: 0 }]);
    machine = { ...machine, freeDiskBytes: 100 };
    await clock.advance(1000);
    expect(entered).toEqual(["a"]);
    await place;
    expect(clock.sleeping).toBe(0);
  });

  it("counts what an attempt was promised until it shows in what the kernel says", async () => {
    machine = { ...machine, availableMemoryBytes: 60 };
    await enter("a", 40);
    const second = enter("b", 40);
    await clock.advance(29_000);
    expect(entered).toEqual(["a"]);
    await clock.advance(2000);
    expect(entered).toEqual(["a", "b"]);
    await second;
  });

  it("forgets who leaves, and lets the next one in", async () => {
    await enter("a", 60);
    const leaving = new AbortController();
    const large = enter("large", 60, leaving.signal);
    const small = enter("small", 10);
    await settle();
    leaving.abort(new Error("leaves"));
    await expect(large).rejects.toThrow("leaves");
    await small;
    expect(entered).toEqual(["a", "small"]);
    await expect(enter("late", 1, leaving.signal)).rejects.toThrow("leaves");
    expect(admission.waiting).toBe(0);
    expect(clock.sleeping).toBe(0);
  });

  it("fails for those who wait while the machine cannot be measured", async () => {
    const measure = async () => {
      throw new Error("no answer");
    };
    const rules = { maxAtOnce: 1, cpuOvercommit: 1, reservedMemoryBytes: 0, reservedDiskBytes: 0 };
    const failing = new Admission({ measure, rules, clock });
    const waits = [failing.enter(need(1)), failing.enter(need(1))];
    for (const wait of waits) await expect(wait).rejects.toThrow("no answer");
    expect(failing.waiting).toBe(0);
  });
});

describe("tasks that are larger than the machine", () => {
  it("are all named, with both numbers", () => {
    const wanted = [
      { task: "org/fits", need: need(100) },
      { task: "org/memory", need: need(3 * 1024 ** 3) },
      { task: "org/cpus", need: { ...need(1), cpus: 128 } },
    ];
    expect(() => requireRoom(wanted, { ...machine, memoryBytes: 2 * 1024 ** 3 })).toThrow(
      expect.objectContaining({
        code: "usage.invalid",
        message: expect.stringMatching(
          /^the engine's machine is too small.*\n {2}org\/memory asks for 3(\.0)? G.* of memory, and there are 2(\.0)? G.*\n {2}org\/cpus asks for 128 processors, and there are 100$/,
        ),
      }),
    );
    requireRoom(wanted.slice(0, 1), machine);
  });
});
