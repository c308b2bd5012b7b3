import { afterEach, describe, expect, it, vi } from "vitest";
import { BrigError } from "../../../src/errors.js";
import { engineFailure, RefusedRequest } from "../../../src/sandbox/docker/engine-failure.js";
import type { PlayedEngine } from "./played-engine.js";
import { failure, playedPlace, recordNames } from "./played-sandbox.js";

afterEach(() => {
  vi.useRealTimers();
});

const unanswered = new BrigError("the connection broke", { code: "engine.unreachable" });
const refused = engineFailure(new RefusedRequest(409, JSON.stringify({ message: "the name is taken" })), {
  doing: "create the container",
  address: "/played",
});

describe("a create request", () => {
  it("that the engine refused has made nothing that would have to be looked for", async () => {
    const { engine, brigHome, warnings, open } = await playedPlace();
    engine.createContainer = async () => {
      throw refused;
    };
    expect(await failure(open())).toBe(refused);
    expect(engine.calls).toEqual([]);
    expect(await recordNames(brigHome)).toEqual([]);
    expect(warnings).toEqual([]);
  });

  it("that got no answer may have made a container, which is removed", async () => {
    const { engine, brigHome, warnings, open } = await playedPlace();
    const create = engine.createContainer;
    engine.createContainer = async (body, options) => {
      await create(body, options);
      throw unanswered;
    };
    expect(await failure(open())).toBe(unanswered);
    expect(engine.container).toMatchObject({ name: expect.stringMatching(/^brig-[0-9a-f-]{36}$/) });
    expect(engine.calls).toEqual(["createContainer", "removeContainer"]);
    expect(engine.running).toEqual([]);
    expect(await recordNames(brigHome)).toEqual([]);
    expect(warnings).toEqual([]);
  });

  /** What the engine answers about a container that does not appear until the time for that is over. */
  function seesNone(engine: PlayedEngine): Promise<void> {
    let asked!: () => void;
    const isAsked = new Promise<void>((resolve) => {
      asked = resolve;
    });
    engine.inspectContainer = async (_ref, options: { signal?: AbortSignal } = {}) => {
      asked();
      return await new Promise((_, reject) => {
        options.signal?.addEventListener("abort", () => reject(options.signal?.reason), { once: true });
      });
    };
    return isAsked;
  }

  it("that got no answer and made no container has what was made for it removed by its name", async () => {
    const { engine, brigHome, warnings, open } = await playedPlace();
    engine.createContainer = async () => {
      throw unanswered;
    };
    const removed = vi.spyOn(engine, "removeContainer");
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const isAsked = seesNone(engine);
    const opening = failure(open());
    await isAsked;
    await vi.advanceTimersByTimeAsync(5000);
    expect(await opening).toBe(unanswered);
    expect(removed).toHaveBeenCalledExactlyOnceWith(
      expect.stringMatching(/^brig-[0-9a-f-]{36}$/),
      expect.anything(),
    );
    expect(warnings).toEqual([]);
    // The engine may make it later, when this program has ended.
    expect(await recordNames(brigHome)).toHaveLength(1);
  });

  it("that is answered after all of that has its container and its record removed", async () => {
    const { engine, brigHome, open } = await playedPlace();
    const create = engine.createContainer;
    const controller = new AbortController();
    let answer!: () => Promise<void>;
    engine.createContainer = async (body, options) => {
      controller.abort(new Error("enough"));
      return await new Promise<string>((resolve) => {
        answer = async () => resolve(await create(body, options));
      });
    };
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const isAsked = seesNone(engine);
    const opening = failure(open({ signal: controller.signal }));
    await isAsked;
    await vi.advanceTimersByTimeAsync(5000);
    expect(await opening).toBe(controller.signal.reason);
    vi.useRealTimers();
    await answer();
    await expect.poll(() => engine.container.state).toBe("gone");
    await expect.poll(() => recordNames(brigHome)).toEqual([]);
  });

  it("about which the engine says nothing any more leaves a record, a warning and the first error", async () => {
    const { engine, brigHome, warnings, open } = await playedPlace();
    const broken = new BrigError("still broken", { code: "engine.unreachable" });
    engine.createContainer = async () => {
      throw unanswered;
    };
    engine.inspectContainer = async () => {
      throw broken;
    };
    expect(await failure(open())).toBe(unanswered);
    expect(warnings).toEqual([
      expect.objectContaining({
        code: "engine.failed",
        message: expect.stringContaining("may have created the container brig-"),
        hint: expect.stringContaining("brig gc"),
        cause: broken,
      }),
    ]);
    expect(await recordNames(brigHome)).toHaveLength(1);
  });
});

describe("a start that fails", () => {
  const broken = new BrigError("no", { code: "engine.failed" });
  const fails = async () => {
    throw broken;
  };

  it.for<[string, (engine: PlayedEngine) => void, object]>([
    ["because it cannot be looked at", (engine) => (engine.inspectCreated = fails), broken],
    ["because it cannot be attached to", (engine) => (engine.attachContainer = fails), broken],
    ["because it cannot be started", (engine) => (engine.startContainer = fails), broken],
    [
      "because it is of another image",
      (engine) => {
        const inspect = engine.inspectCreated;
        engine.inspectCreated = async (id) => ({ ...(await inspect(id)), imageId: "sha256:2" });
      },
      { code: "policy.not-enforced", message: expect.stringContaining("FROM") },
    ],
  ])("%s leaves no container, no stream and no record", async ([, change, expected]) => {
    const { engine, brigHome, warnings, open } = await playedPlace();
    change(engine);
    expect(await failure(open())).toMatchObject(expected);
    expect(engine.running).toEqual([]);
    expect(engine.container.runner.hellos).toEqual([]);
    await expect.poll(() => engine.container.runner.isConnected).toBe(false);
    expect(await recordNames(brigHome)).toEqual([]);
    expect(warnings).toEqual([]);
  });

  it("and whose container cannot be removed is the error, and the other failure a warning", async () => {
    const { engine, brigHome, warnings, open } = await playedPlace();
    engine.startContainer = fails;
    engine.removeContainer = async () => {
      throw unanswered;
    };
    expect(await failure(open())).toBe(broken);
    expect(warnings).toEqual([expect.objectContaining({ code: "engine.failed", cause: unanswered })]);
    // What is left is still known to brig gc.
    expect(await recordNames(brigHome)).toHaveLength(1);
  });

  it.for([
    ["is created", "createContainer"],
    ["is looked at", "inspectCreated"],
    ["is attached to", "attachContainer"],
    ["is started", "startContainer"],
  ] as const)("because its signal is aborted while the container %s", async ([, method]) => {
    const { engine, brigHome, open } = await playedPlace();
    const controller = new AbortController();
    const reason = new Error("enough");
    const real = engine[method] as (...args: unknown[]) => Promise<unknown>;
    Object.assign(engine, {
      [method]: async (...args: unknown[]) => {
        const answer = await real(...args);
        controller.abort(reason);
        return answer;
      },
    });
    expect(await failure(open({ signal: controller.signal }))).toBe(reason);
    expect(engine.running).toEqual([]);
    await expect.poll(() => engine.container.runner.isConnected).toBe(false);
    expect(engine.container.runner.hellos).toEqual([]);
    expect(engine.calls.includes("startContainer")).toBe(method === "startContainer");
    expect(await recordNames(brigHome)).toEqual([]);
  });

  it("and to which the engine is attached only afterwards leaves no stream open", async () => {
    const { engine, open } = await playedPlace();
    let answer!: () => void;
    const isAnswered = new Promise<void>((resolve) => {
      answer = resolve;
    });
    engine.attachContainer = async () => {
      await isAnswered;
      return await engine.container.runner.dial();
    };
    engine.inspectCreated = fails;
    expect(await failure(open())).toBe(broken);
    const { runner } = engine.container;
    answer();
    await expect.poll(() => runner.connections).toBe(1);
    await expect.poll(() => runner.isConnected).toBe(false);
  });
});
