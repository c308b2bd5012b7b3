import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { openConversation } from "../../../src/agent/conversation.js";
import type { ConversationOptions, SettingChange } from "../../../src/agent/conversation-options.js";
import { messageText } from "../../../src/agent/model/items.js";
import type { ModelClient, ModelRequest } from "../../../src/agent/model/model-client.js";
import { parseScript } from "../../../src/agent/model/script/script.js";
import { createScriptedClient } from "../../../src/agent/model/script/scripted-client.js";
import type { SessionSetting } from "../../../src/agent/session/setting.js";
import type { AgentEvent } from "../../../src/agent/turn/events.js";
import { BrigError } from "../../../src/errors.js";
import { ScriptedApprover } from "../../support/approvals.js";
import { MemorySandbox } from "../../support/memory-sandbox.js";

const setting = {
  cwd: "/work",
  sandboxMode: "workspace-write",
  network: { kind: "none" as const },
  writableRoots: [],
  shell: "bash",
  timezone: "UTC",
};

function scripted(yaml: string): ModelClient {
  return createScriptedClient(parseScript(yaml, "play.yaml", { hasManyTurns: true }));
}

/** Keeps what was asked. */
function recording(model: ModelClient): { model: ModelClient; requests: ModelRequest[] } {
  const requests: ModelRequest[] = [];
  return {
    requests,
    model: {
      ...model,
      stream(request, signal) {
        requests.push(request);
        return model.stream(request, signal);
      },
    },
  };
}

function open(options: Partial<ConversationOptions> & Pick<ConversationOptions, "model">) {
  const events: AgentEvent[] = [];
  const conversation = openConversation({
    sandbox: () => Promise.resolve(new MemorySandbox()),
    setting,
    ...options,
    onEvent: (event) => events.push(event),
  });
  return { conversation, events };
}

const newSandbox = () => Promise.resolve(new MemorySandbox());

const twoTurns = `steps:
  - text: First.
  - calls:
      - shell: { command: [echo, hi] }
  - text: Second.
`;

describe("a conversation", () => {
  it("goes on from turn to turn with all that was said", async () => {
    const { model, requests } = recording(scripted(twoTurns));
    const { conversation, events } = open({ model });
    const first = await conversation.runTurn({ prompt: "one" });
    const second = await conversation.runTurn({ prompt: "two" });
    await conversation.close();
    expect(first).toMatchObject({ status: "completed", lastMessage: "First.", toolCalls: 0 });
    expect(second).toMatchObject({ status: "completed", lastMessage: "Second.", toolCalls: 1 });
    const said = requests[1]?.input.flatMap((item) => (item.type === "message" ? [messageText(item)] : []));
    expect(said?.slice(-3)).toEqual(["one", "First.", "two"]);
    expect(events.filter(({ kind }) => kind === "session-started")).toHaveLength(1);
    expect(events.filter(({ kind }) => kind === "sandbox-ready")).toHaveLength(1);
  });

  it("keeps one sandbox for all turns and closes it once, at its end", async () => {
    const sandboxes: MemorySandbox[] = [];
    const { conversation } = open({
      model: scripted(twoTurns),
      sandbox: () => {
        const sandbox = new MemorySandbox();
        sandboxes.push(sandbox);
        return Promise.resolve(sandbox);
      },
    });
    await conversation.runTurn({ prompt: "one" });
    await conversation.runTurn({ prompt: "two" });
    expect(sandboxes.map(({ isClosed }) => isClosed)).toEqual([false]);
    await conversation.close();
    expect(sandboxes.map(({ isClosed }) => isClosed)).toEqual([true]);
  });

  it("gives its sandbox back between turns, and opens another one for the next", async () => {
    const sandboxes: MemorySandbox[] = [];
    const { model, requests } = recording(scripted(twoTurns));
    const { conversation } = open({
      model,
      sandbox: () => {
        const sandbox = new MemorySandbox();
        sandboxes.push(sandbox);
        return Promise.resolve(sandbox);
      },
    });
    await conversation.runTurn({ prompt: "one" });
    await conversation.releaseSandbox();
    expect(sandboxes.map(({ isClosed }) => isClosed)).toEqual([true]);
    await conversation.releaseSandbox();
    await expect(conversation.runTurn({ prompt: "two" })).resolves.toMatchObject({ status: "completed" });
    expect(sandboxes.map(({ isClosed }) => isClosed)).toEqual([true, false]);
    const said = requests[1]?.input.flatMap((item) => (item.type === "message" ? [messageText(item)] : []));
    expect(said?.slice(-3)).toEqual(["one", "First.", "two"]);
    await conversation.close();
    expect(sandboxes.map(({ isClosed }) => isClosed)).toEqual([true, true]);
  });

  it("does not give its sandbox back during a turn", async () => {
    const { conversation } = open({ model: scripted(twoTurns) });
    const turn = conversation.runTurn({ prompt: "one" });
    await expect(conversation.releaseSandbox()).rejects.toThrow(TypeError);
    await turn;
    await conversation.close();
  });

  it("goes on after a turn that was interrupted", async () => {
    const { model, requests } = recording(
      scripted(`steps:
  - calls:
      - shell: { command: [sleep, "60"] }
  - text: Better now.
`),
    );
    const { conversation, events } = open({ model });
    const stop = new AbortController();
    const turn = conversation.runTurn({ prompt: "one", signal: stop.signal });
    while (!events.some(({ kind }) => kind === "command-started")) await sleep(5);
    stop.abort();
    await expect(turn).resolves.toMatchObject({ status: "interrupted" });
    await expect(conversation.runTurn({ prompt: "two" })).resolves.toMatchObject({
      status: "completed",
      lastMessage: "Better now.",
    });
    const types = requests[1]?.input.map(({ type }) => type);
    expect(types?.filter((type) => type === "function_call")).toHaveLength(1);
    expect(types?.filter((type) => type === "function_call_output")).toHaveLength(1);
    await conversation.close();
  });

  it("makes another sandbox for the turn after one whose sandbox could not start", async () => {
    let attempts = 0;
    const { conversation } = open({
      model: scripted(`steps:
  - text: Hello.
  - text: Hello again.
`),
      sandbox: () => {
        attempts++;
        if (attempts === 1) return Promise.reject(new BrigError("no engine", { code: "engine.unreachable" }));
        return Promise.resolve(new MemorySandbox());
      },
    });
    await expect(conversation.runTurn({ prompt: "one" })).resolves.toMatchObject({
      status: "failed",
      error: { code: "engine.unreachable" },
    });
    await expect(conversation.runTurn({ prompt: "two" })).resolves.toMatchObject({ status: "completed" });
    await conversation.close();
  });

  it("changes its sandbox between turns, and closes the one before", async () => {
    const [before, after] = [new MemorySandbox(), new MemorySandbox()];
    const { conversation } = open({
      model: scripted(twoTurns),
      sandbox: () => Promise.resolve(before),
    });
    await conversation.runTurn({ prompt: "one" });
    await conversation.changeSetting({
      setting: { ...setting, sandboxMode: "read-only" },
      sandbox: () => Promise.resolve(after),
    });
    expect(before.isClosed).toBe(true);
    await expect(conversation.sandbox).resolves.toBe(after);
    await expect(conversation.runTurn({ prompt: "two" })).resolves.toMatchObject({ toolCalls: 1 });
    await conversation.close();
    expect(after.isClosed).toBe(true);
  });

  it.each<[what: string, change: Partial<SessionSetting>, sandbox?: SettingChange["sandbox"]]>([
    ["a stricter mode", { sandboxMode: "read-only" }, newSandbox],
    ["a weaker mode", { sandboxMode: "danger-full-access" }, newSandbox],
    ["another policy", { approvalPolicy: "on-failure" }],
  ])("asks anew in %s about what was approved for the session before", async (_, change, sandbox) => {
    const dangerous = "shell: { command: [rm, -f, /proc/nonexistent/x] }";
    const approver = new ScriptedApprover("approved_for_session");
    const { conversation } = open({
      model: scripted(`steps:\n${`  - calls: [{ ${dangerous} }]\n  - text: Done.\n`.repeat(3)}`),
      setting: { ...setting, cwd: "/tmp", approvalPolicy: "on-request" },
      approver,
      escalatedSandbox: newSandbox,
    });
    await conversation.runTurn({ prompt: "one" });
    await conversation.runTurn({ prompt: "two" });
    expect(approver.asked).toHaveLength(1);
    await conversation.changeSetting({ setting: { ...conversation.setting, ...change }, sandbox });
    await conversation.runTurn({ prompt: "three" });
    await conversation.close();
    expect(approver.asked).toHaveLength(2);
  });

  it("takes one turn at a time", async () => {
    const { conversation } = open({ model: scripted(twoTurns) });
    const turn = conversation.runTurn({ prompt: "one" });
    await expect(conversation.runTurn({ prompt: "too soon" })).rejects.toThrow("one turn at a time");
    await turn;
    await conversation.close();
  });

  it("is refused, and starts nothing, where it may do more than the session that starts it", async () => {
    const { conversation: parent } = open({
      model: scripted(twoTurns),
      setting: { ...setting, sandboxMode: "read-only" },
    });
    let started = 0;
    const child = (sandboxMode: string, network: { kind: "none" | "full" } = { kind: "none" }) =>
      open({
        model: scripted(twoTurns),
        parent: parent.authority,
        setting: { ...setting, sandboxMode, network },
        sandbox: () => {
          started++;
          return Promise.resolve(new MemorySandbox());
        },
      }).conversation;
    expect(() => child("workspace-write")).toThrow(
      expect.objectContaining({ code: "policy.invalid", message: expect.stringContaining("sandbox mode") }),
    );
    expect(() => child("read-only", { kind: "full" })).toThrow(/: network$/);
    await sleep(5);
    expect(started).toBe(0);
    const allowed = child("read-only");
    await allowed.sandbox;
    expect(started).toBe(1);
    await expect(
      allowed.changeSetting({ setting: { ...setting, sandboxMode: "danger-full-access" } }),
    ).rejects.toMatchObject({ code: "policy.invalid" });
    await Promise.all([parent.close(), allowed.close()]);
  });
});
