import { describe, expect, it } from "vitest";
import { openConversation } from "../../../../src/agent/conversation.js";
import { parseScript } from "../../../../src/agent/model/script/script.js";
import { createScriptedClient } from "../../../../src/agent/model/script/scripted-client.js";
import type { SessionSetup } from "../../../../src/agent/setup/setup-options.js";
import type { AgentEvent } from "../../../../src/agent/turn/events.js";
import { BrigError } from "../../../../src/errors.js";
import { eventually } from "../../../support/egress-place.js";
import { MemorySandbox } from "../../../support/memory-sandbox.js";

const setting = {
  ...{ cwd: "/work", sandboxMode: "workspace-write", network: { kind: "none" as const } },
  ...{ writableRoots: [], shell: "bash", timezone: "UTC" },
};
const script = JSON.stringify({
  steps: Array.from({ length: 4 }, () => [
    { calls: [{ shell: { command: ["echo", "hi"] } }] },
    { text: "done" },
  ]).flat(),
});

function opened(run: SessionSetup["run"], start: (sandbox: MemorySandbox) => unknown = () => undefined) {
  const events: AgentEvent[] = [];
  const sandboxes: MemorySandbox[] = [];
  const conversation = openConversation({
    model: createScriptedClient(parseScript(script, "play.yaml", { hasManyTurns: true })),
    sandbox: async () => {
      const sandbox = new MemorySandbox();
      sandboxes.push(sandbox);
      await start(sandbox);
      return sandbox;
    },
    setup: { argv: ["npm", "ci"], network: "allowlist:@npm", run },
    setting,
    onEvent: (event) => events.push(event),
  });
  const kinds = () =>
    events.map(({ kind }) => kind).filter((kind) => /setup|sandbox-ready|command-started/.test(kind));
  /** A turn that failed may have had the model's call already, and the next one then has only the text that follows it. */
  const runCommand = async () => {
    for (let turn = 0; turn < 2 && !kinds().includes("command-started"); turn++)
      await expect(conversation.runTurn({ prompt: "go on" })).resolves.toMatchObject({ status: "completed" });
  };
  return { conversation, events, sandboxes, kinds, runCommand };
}

const done = { exitCode: 0, durationMs: 1, output: "", error: null };
const failed = { ...done, exitCode: 1, error: new BrigError("it failed", { code: "setup.failed" }) };

/** Never ends by itself. */
const endless: SessionSetup["run"] = (_, { signal }) =>
  new Promise((_resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });

describe("the set-up of a session", () => {
  it("reports what it prints, also before the session begins, but not without end", async () => {
    const { conversation, events, sandboxes } = opened(async (_, { onOutput }) => {
      onOutput(Buffer.from("first"));
      for (let count = 0; count < 100; count++) onOutput(Buffer.alloc(64 * 1024));
      return { ...done, output: "first and last" };
    });
    await eventually(() => expect(sandboxes.length).toBe(1));
    await conversation.runTurn({ prompt: "one" });
    const setup = events.filter(({ kind }) => kind.startsWith("setup"));
    expect(setup).toEqual([
      { kind: "setup-started", argv: ["npm", "ci"], network: "allowlist:@npm" },
      { kind: "setup-output", chunk: Buffer.from("first") },
      { kind: "setup-ended", exitCode: 0, durationMs: 1, output: "first and last" },
    ]);
    await conversation.close();
  });

  it("runs before the first call, and not again in a sandbox that replaces the first one", async () => {
    const setUp: object[] = [];
    const { conversation, sandboxes, kinds } = opened(async (sandbox) => {
      setUp.push(sandbox);
      return done;
    });
    await conversation.runTurn({ prompt: "one" });
    expect(kinds()).toEqual(["setup-started", "setup-ended", "sandbox-ready", "command-started"]);
    await conversation.releaseSandbox();
    await expect(conversation.runTurn({ prompt: "two" })).resolves.toMatchObject({ status: "completed" });
    await conversation.changeSetting({ setting, sandbox: async () => new MemorySandbox() });
    await expect(conversation.runTurn({ prompt: "three" })).resolves.toMatchObject({ status: "completed" });
    expect(sandboxes.length).toBe(2);
    expect(setUp.map((sandbox) => sandboxes.indexOf(sandbox as MemorySandbox))).toEqual([0]);
    await conversation.close();
  });

  it("that fails ends the turn and closes the sandbox, and is tried again in the next turn", async () => {
    const ends = [failed, done];
    const { conversation, sandboxes, kinds, runCommand } = opened(async () => ends.shift() ?? failed);
    await expect(conversation.runTurn({ prompt: "one" })).resolves.toMatchObject({
      status: "failed",
      error: { code: "setup.failed" },
    });
    expect(kinds()).toEqual(["setup-started", "setup-ended"]);
    expect(sandboxes.map(({ isClosed }) => isClosed)).toEqual([true]);
    await runCommand();
    expect(kinds().slice(2)).toEqual(["setup-started", "setup-ended", "sandbox-ready", "command-started"]);
    await conversation.close();
    expect(sandboxes.map(({ isClosed }) => isClosed)).toEqual([true, true]);
  });

  it("ends with the turn that is interrupted, and is tried again in the next one", async () => {
    const runs = [endless, async () => done];
    const { conversation, sandboxes, kinds } = opened((sandbox, options) =>
      (runs.shift() ?? endless)(sandbox, options),
    );
    const stop = new AbortController();
    const turn = conversation.runTurn({ prompt: "one", signal: stop.signal });
    await eventually(() => expect(kinds()).toEqual(["setup-started"]));
    stop.abort();
    await expect(turn).resolves.toMatchObject({ status: "interrupted" });
    await eventually(() => expect(sandboxes.map(({ isClosed }) => isClosed)).toEqual([true]));
    await expect(conversation.runTurn({ prompt: "two" })).resolves.toMatchObject({ status: "completed" });
    await conversation.close();
  });

  it("does not begin for a turn that was interrupted while the sandbox started", async () => {
    let started: () => void = () => undefined;
    const starting = new Promise<void>((resolve) => {
      started = resolve;
    });
    const { conversation, sandboxes, kinds, runCommand } = opened(
      async () => done,
      () => starting,
    );
    const stop = new AbortController();
    const turn = conversation.runTurn({ prompt: "one", signal: stop.signal });
    await eventually(() => expect(sandboxes.length).toBe(1));
    stop.abort();
    started();
    await expect(turn).resolves.toMatchObject({ status: "interrupted" });
    await eventually(() => expect(sandboxes.map(({ isClosed }) => isClosed)).toEqual([true]));
    expect(kinds()).toEqual([]);
    await runCommand();
    expect(kinds()).toEqual(["setup-started", "setup-ended", "sandbox-ready", "command-started"]);
    await conversation.close();
  });

  it("that fails is told although its sandbox cannot be closed, which is a warning", async () => {
    const { conversation, events } = opened(
      async () => failed,
      (sandbox) => {
        sandbox.close = async () => {
          throw new BrigError("it cannot be removed", { code: "engine.failed" });
        };
      },
    );
    await expect(conversation.runTurn({ prompt: "one" })).resolves.toMatchObject({
      status: "failed",
      error: { code: "setup.failed" },
    });
    expect(events).toContainEqual({ kind: "warning", message: "it cannot be removed" });
    await conversation.close();
  });

  it("ends when the session is closed", async () => {
    const { conversation, sandboxes } = opened(endless);
    await eventually(() => expect(sandboxes.length).toBe(1));
    await conversation.close();
    expect(sandboxes.map(({ isClosed }) => isClosed)).toEqual([true]);
  });
});
