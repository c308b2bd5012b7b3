import { beforeEach, describe, expect, it } from "vitest";
import { BrigError } from "../../../../../src/errors.js";
import { sharedSignal } from "../../../../../src/lib/time/shared-signal.js";
import type { Sandbox, SpawnOptions } from "../../../../../src/sandbox/index.js";
import { ProcessTable } from "../../../../../src/services/serve/processes/process-table.js";
import { PlayedProcess } from "./played-process.js";

const started: { played: PlayedProcess; options: SpawnOptions }[] = [];
let heldCount = 0;
let ending: AbortController;
let table: ProcessTable;

beforeEach(() => {
  started.length = 0;
  heldCount = 0;
  ending = new AbortController();
  const sandbox = {
    spawn: async (_argv: readonly string[], options: SpawnOptions) => {
      const played = new PlayedProcess({ stdin: options.stdin, hasTerminal: options.pty !== undefined });
      sharedSignal(ending.signal).addEventListener("abort", () => played.fail(options.signal?.reason));
      started.push({ played, options });
      return played;
    },
    files: {
      stat: async (path: string) => {
        if (path === "/tmp/.") return {};
        throw new BrigError("there is nothing", { code: "file.not-found", errno: "ENOENT" });
      },
    },
  };
  table = new ProcessTable({
    sandbox: sandbox as unknown as Sandbox,
    cwd: "/start",
    env: { GIVEN: "to all", LESS: "x" },
    signal: ending.signal,
    hold() {
      heldCount++;
      return { [Symbol.dispose]: () => void heldCount-- };
    },
  });
});

const finish = async (index: number) => {
  started[index]?.played.finish();
  await table.list()[index]?.ended;
};

describe("a process that is started", () => {
  it("has the directory and the variables of all, and its own", async () => {
    await table.start({ argv: ["a"] });
    await table.start({
      argv: ["b"],
      cwd: "/tmp",
      env: { OWN: "own", LESS: null },
      pty: { rows: 2, cols: 3 },
    });
    expect(started.map(({ options: { cwd, env, pty } }) => ({ cwd, env, pty }))).toEqual([
      { cwd: "/start", env: { GIVEN: "to all", LESS: "x" }, pty: undefined },
      { cwd: "/tmp", env: { GIVEN: "to all", LESS: undefined, OWN: "own" }, pty: { rows: 2, cols: 3 } },
    ]);
  });

  it("is found by an id of its own, running or not, in the order of the starts", async () => {
    const [one, two] = [await table.start({ argv: ["a"] }), await table.start({ argv: ["b"] })];
    expect(table.list()).toEqual([one, two]);
    await finish(0);
    expect(table.get(one.id).record).toMatchObject({ argv: ["a"], state: "ended" });
    expect(table.get(two.id).record).toMatchObject({ argv: ["b"], state: "running" });
    expect(() => table.get("other")).toThrow(expect.objectContaining({ code: "serve.unknown" }));
    expect(() => table.get("__proto__")).toThrow(expect.objectContaining({ code: "serve.unknown" }));
  });

  it("is activity of the sandbox until it ends", async () => {
    await table.start({ argv: ["a"] });
    await table.start({ argv: ["b"] });
    expect(heldCount).toBe(2);
    await finish(0);
    expect(heldCount).toBe(1);
    await finish(1);
    expect(heldCount).toBe(0);
  });

  it("ends with the sandbox, after which none starts", async () => {
    const process = await table.start({ argv: ["a"] });
    ending.abort(new BrigError("it was deleted", { code: "sandbox.gone" }));
    await expect(process.ended).rejects.toMatchObject({ code: "sandbox.gone" });
    await expect(table.start({ argv: ["b"] })).rejects.toMatchObject({ code: "sandbox.gone" });
    expect(heldCount).toBe(0);
  });
});

describe("a process that is not started", () => {
  it("is one whose directory is not there, or whose caller has gone", async () => {
    const bad = table.start({ argv: ["a"], cwd: "/nowhere" });
    await expect(bad).rejects.toMatchObject({ code: "exec.bad-cwd", errno: "ENOENT" });
    const gone = new AbortController();
    const starting = table.start({ argv: ["a"], cwd: "/tmp" }, { signal: gone.signal });
    gone.abort(new Error("the caller goes"));
    await expect(starting).rejects.toThrow("the caller goes");
    expect([started.length, heldCount, table.list().length]).toEqual([0, 0, 0]);
  });

  it("is one too many: the others run on, and there is room again when one ends", async () => {
    const outcomes = await Promise.allSettled(
      Array.from({ length: 1000 }, async () => await table.start({ argv: ["a"] })),
    );
    const refused = outcomes.filter(({ status }) => status === "rejected");
    expect([started.length, refused.length]).toEqual([512, 488]);
    expect(refused[0]).toMatchObject({ reason: { status: 429, code: "serve.busy" } });
    await finish(0);
    await table.start({ argv: ["b"] });
    await expect(table.start({ argv: ["c"] })).rejects.toMatchObject({ code: "serve.busy" });
  });

  it("is one whose arguments have no room beside those of the others that run", async () => {
    const argv = ["x".repeat(6 * 1024 * 1024)];
    await table.start({ argv });
    await table.start({ argv });
    await expect(table.start({ argv })).rejects.toMatchObject({ code: "serve.busy" });
    await finish(0);
    await table.start({ argv });
    // The one that has ended is forgotten for it.
    expect(table.list()).toHaveLength(2);
  });
});

it("of those that have ended the latest are known", async () => {
  const [first] = [await table.start({ argv: ["a"] })];
  await finish(0);
  for (let count = 1; count < 1100; count++) {
    await table.start({ argv: ["a"] });
    started.at(-1)?.played.finish();
    await table.list().at(-1)?.ended;
  }
  expect(table.list()).toHaveLength(1024);
  expect(() => table.get(`${first?.id}`)).toThrow("there is no such process");
});
