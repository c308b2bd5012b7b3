import { describe, expect, it, vi } from "vitest";
import { BrigError } from "../../../src/errors.js";
import { FrameType } from "../../../src/sandbox/channel/protocol.js";
import type { PlayedEngine } from "./played-engine.js";
import { failure, playedPlace } from "./played-sandbox.js";

describe("late output", () => {
  it("goes to the listener with the number of its call, as a copy", async () => {
    const { engine, open } = await playedPlace();
    const late: [string, number][] = [];
    const opened = await open({ onLateOutput: (data, call) => void late.push([String(data), call]) });
    engine.container.runner.send(FrameType.late, 1, Buffer.from("still here"));
    await opened.link.ping();
    expect(late).toEqual([["still here", 1]]);
    await opened.release({ isEnding: false });
  });

  it("whose listener throws is a warning of the process, and the sandbox goes on", async () => {
    const { engine, open } = await playedPlace();
    const warned = vi.spyOn(process, "emitWarning").mockReturnValue(undefined);
    const opened = await open({
      onLateOutput: () => {
        throw new Error("the listener's");
      },
    });
    engine.container.runner.send(FrameType.late, 1, Buffer.from("x"));
    await expect
      .poll(() => warned.mock.calls)
      .toEqual([[expect.objectContaining({ message: "the listener's" })]]);
    await opened.link.ping();
    await opened.release({ isEnding: false });
  });
});

describe("a container that ends", () => {
  it.for<[string, (engine: PlayedEngine) => void, object]>([
    ["because it was killed", () => undefined, { reason: "killed" }],
    [
      "when its lease was over",
      (engine) => {
        engine.containerEvents = async () => [
          { action: "start", atMs: 0, exitCode: null },
          { action: "die", atMs: 1, exitCode: 70 },
        ];
      },
      { reason: "lease" },
    ],
    [
      "without the engine saying why",
      (engine) => {
        engine.containerEvents = async () => {
          throw new BrigError("no", { code: "engine.failed" });
        };
      },
      { reason: "killed", message: "the sandbox's container was removed" },
    ],
  ])("%s is gone for every call", async ([, change, expected]) => {
    const { engine, open } = await playedPlace();
    const opened = await open();
    change(engine);
    engine.end(engine.container);
    expect(await failure(opened.link.ping())).toMatchObject({ code: "sandbox.gone", ...expected });
    await opened.release({ isEnding: false });
  });

  it("is not gone while it is paused", async () => {
    const { engine, open } = await playedPlace();
    const opened = await open();
    const inspect = engine.inspectContainer;
    let asked = 0;
    engine.inspectContainer = async (ref) => {
      const state = await inspect(ref);
      return state && { ...state, paused: asked++ < 2 };
    };
    engine.container.runner.cut();
    await opened.link.ping();
    expect(asked).toBe(3);
    expect(engine.container.runner.connections).toBe(2);
    await opened.release({ isEnding: false });
  });
});
