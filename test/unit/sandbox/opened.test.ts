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

  it("and runs again was restarted by somebody, which its new runner does not say", async () => {
    const { engine, open } = await playedPlace();
    const opened = await open();
    await opened.link.ping();
    const events = ["start", "kill", "die", "stop", "start", "restart"];
    engine.containerEvents = async () => events.map((action, atMs) => ({ action, atMs, exitCode: null }));
    engine.openExec = async () => {
      throw new Error("the stream to the runner ended");
    };
    engine.container.runner.cut();
    const gone = { code: "sandbox.gone", reason: "restarted" };
    expect(await failure(opened.link.ping())).toMatchObject(gone);
    await opened.release({ isEnding: false });
  });

  it("is looked at again if it was stopped, since it may be being restarted", async () => {
    const { engine, open } = await playedPlace();
    const opened = await open();
    const inspect = engine.inspectContainer;
    const seen = ["start", "kill", "die"];
    engine.containerEvents = async () => seen.map((action, atMs) => ({ action, atMs, exitCode: null }));
    engine.inspectContainer = async (ref) => {
      const state = await inspect(ref);
      const isStopped = !seen.includes("stop");
      if (isStopped) seen.push("stop", "start");
      return state && { ...state, running: !isStopped };
    };
    engine.openExec = async () => {
      throw new Error("the stream to the runner ended");
    };
    engine.container.runner.cut();
    expect(await failure(opened.link.ping())).toMatchObject({ code: "sandbox.gone", reason: "restarted" });
    await opened.release({ isEnding: false });
  });

  it("is not gone while it is paused, and that is said once", async () => {
    const { engine, open } = await playedPlace();
    const warnings: string[] = [];
    const opened = await open({ onWarning: ({ message }) => void warnings.push(message) });
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
    expect(warnings).toEqual(["somebody has paused the sandbox's container, so what runs in it waits"]);
    await opened.release({ isEnding: false });
  });
});
