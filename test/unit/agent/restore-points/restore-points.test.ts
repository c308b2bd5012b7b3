import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest";
import type { AgentSandbox } from "../../../../src/agent/agent-sandbox.js";
import { openConversation } from "../../../../src/agent/conversation.js";
import type { Conversation } from "../../../../src/agent/conversation-options.js";
import { messageText } from "../../../../src/agent/model/items.js";
import type { ModelClient } from "../../../../src/agent/model/model-client.js";
import { noSessionLog, type SessionRecord } from "../../../../src/agent/session/write/session-file.js";
import type { AgentEvent } from "../../../../src/agent/turn/events.js";
import { BrigError } from "../../../../src/errors.js";
import { MemorySandbox } from "../../../support/memory-sandbox.js";
import {
  agentSetting,
  inOrder,
  openPlayed,
  type PlayedAnswer,
  playing,
  spawnedIds,
} from "../../../support/played-agents.js";
import { PointSandbox } from "../../../support/point-sandbox.js";

const sandboxes: PointSandbox[] = [];

afterEach(async () => {
  await Promise.all(sandboxes.splice(0).map((sandbox) => sandbox.close()));
});

function pointSandbox(): PointSandbox {
  const sandbox = new PointSandbox();
  sandboxes.push(sandbox);
  return sandbox;
}

/** A session whose model gives these answers. The records are those of the session file. */
function open(
  answers: PlayedAnswer[],
  sandbox: AgentSandbox,
  cwd: string,
  wrap = (model: ModelClient) => model,
) {
  const records: SessionRecord[] = [];
  const events: AgentEvent[] = [];
  const played = playing(inOrder(...answers));
  const conversation = openConversation({
    model: wrap(played),
    sandbox,
    setting: { ...agentSetting, cwd },
    onEvent: (event) => events.push(event),
    session: { ...noSessionLog, append: (record) => void records.push(record) },
  });
  return { conversation, records, events, requests: played.requests };
}

/**
 * Takes each restore point only when `isDue`, and so much later that whatever does not wait for it has happened
 * before.
 */
function slow(sandbox: PointSandbox, isDue = () => true): void {
  const keep = sandbox.restorePoint.bind(sandbox);
  sandbox.restorePoint = async (options) => {
    while (!isDue()) await new Promise(setImmediate);
    for (let round = 0; round < 3000; round++) await new Promise(setImmediate);
    return await keep(options);
  };
}

const shell = (script: string): [string, object] => ["exec_command", { cmd: script, login: false }];
const step = (...scripts: string[]): PlayedAnswer => ({ calls: scripts.map(shell) });

function kinds(records: readonly SessionRecord[]): string[] {
  return records.map(({ type, payload }) => (type === "response_item" ? String(payload.type) : type));
}

const pointsIn = (records: readonly SessionRecord[]) =>
  records.filter(({ type }) => type === "brig.restore_point").map(({ payload }) => payload);

async function turn(conversation: Conversation, prompt = "go", signal?: AbortSignal) {
  return await conversation.runTurn({ prompt, signal });
}

describe("a call that changed the workspace", () => {
  it("leaves a restore point, recorded after the call and before the next response", async () => {
    const sandbox = pointSandbox();
    const { conversation, records, events } = open(
      [step("echo 1 > a"), step("cat a"), { text: "done" }],
      sandbox,
      sandbox.workspace,
    );
    await turn(conversation);
    await conversation.close();
    const point = { snapshot: "tree-1", count: 1, changes: [{ path: "a", change: "added" }] };
    expect(pointsIn(records)).toEqual([{ call_id: "call_1", point: 1, ...point }]);
    expect(events).toContainEqual({ kind: "restore-point-created", callId: "call_1", point: 1, ...point });
    const all = kinds(records);
    const at = all.indexOf("brig.restore_point");
    expect(all.indexOf("brig.call")).toBeLessThan(at);
    expect(all.slice(at).indexOf("function_call")).toBeGreaterThan(0);
    expect(records.find(({ type }) => type === "brig.sandbox")?.payload).toMatchObject({
      snapshot: "tree-1",
    });
  });

  it("is followed by its restore point before a call that must wait for it", async () => {
    const sandbox = pointSandbox();
    slow(sandbox);
    const patch = "*** Begin Patch\n*** Add File: b\n+b\n*** End Patch\n";
    const { conversation, records } = open(
      [{ calls: [shell("echo 1 > a"), ["apply_patch", { input: patch }], shell("rm a")] }, { text: "done" }],
      sandbox,
      sandbox.workspace,
    );
    await turn(conversation);
    await conversation.close();
    expect(pointsIn(records).map(({ call_id, changes }) => [call_id, changes])).toEqual([
      ["call_1", [{ path: "a", change: "added" }]],
      ["call_2", [{ path: "b", change: "added" }]],
      ["call_3", [{ path: "a", change: "deleted" }]],
    ]);
  });

  it("is followed by its restore point before anything else that the model is told", async () => {
    const sandbox = pointSandbox();
    const { conversation, records } = open(
      [step("echo 1 > a; no-such-program"), { text: "done" }],
      sandbox,
      sandbox.workspace,
    );
    await turn(conversation);
    await conversation.close();
    const all = records.map(({ type, payload }) =>
      type === "response_item" ? `${payload.type} ${payload.role ?? ""}` : type,
    );
    const output = all.findIndex((kind) => kind.startsWith("function_call_output"));
    expect(all.indexOf("brig.restore_point")).toBeLessThan(all.indexOf("message user", output));
  });

  it("makes neither its own output nor the request with it wait for the restore point, but the next call", async () => {
    const sandbox = pointSandbox();
    let requests = 0;
    slow(sandbox, () => requests > 1);
    const { conversation, records } = open(
      [step("echo 1 > a"), step("echo 2 > b"), { text: "done" }],
      sandbox,
      sandbox.workspace,
      (model) => ({
        ...model,
        stream(request, signal) {
          requests++;
          return model.stream(request, signal);
        },
      }),
    );
    await turn(conversation);
    await conversation.close();
    expect(pointsIn(records).map(({ call_id, changes }) => [call_id, changes])).toEqual([
      ["call_1", [{ path: "a", change: "added" }]],
      ["call_2", [{ path: "b", change: "added" }]],
    ]);
  });

  it("leaves its restore point even if it is interrupted", async () => {
    const sandbox = pointSandbox();
    slow(sandbox);
    const stop = new AbortController();
    const { conversation, records, events } = open(
      [step("echo 1 > a; sleep 60")],
      sandbox,
      sandbox.workspace,
    );
    const running = turn(conversation, "go", stop.signal);
    while (!existsSync(join(sandbox.workspace, "a"))) await new Promise(setImmediate);
    stop.abort();
    expect(await running).toMatchObject({ status: "interrupted" });
    await conversation.close();
    expect(pointsIn(records)).toMatchObject([{ call_id: "call_1", changes: [{ path: "a" }] }]);
    const order = kinds(records);
    expect(order.indexOf("brig.restore_point")).toBeLessThan(order.indexOf("brig.turn"));
    expect(events.at(-1)).toEqual({ kind: "turn-interrupted" });
  });

  it("leaves its restore point if the turn is interrupted while that is taken", async () => {
    const sandbox = pointSandbox();
    const stop = new AbortController();
    const keep = sandbox.restorePoint.bind(sandbox);
    sandbox.restorePoint = async (options) => {
      stop.abort();
      return await keep(options);
    };
    const { conversation, records } = open(
      [step("echo 1 > a"), { text: "never" }],
      sandbox,
      sandbox.workspace,
    );
    expect(await turn(conversation, "go", stop.signal)).toMatchObject({ status: "interrupted" });
    await conversation.close();
    expect(pointsIn(records)).toMatchObject([{ call_id: "call_1", changes: [{ path: "a" }] }]);
  });

  it("leaves it to the next one if it takes long when the turn is interrupted, without a warning", async () => {
    const sandbox = pointSandbox();
    const stop = new AbortController();
    const keep = sandbox.restorePoint.bind(sandbox);
    sandbox.restorePoint = async ({ signal } = {}) => {
      // Like one that would store very much.
      stop.abort();
      vi.advanceTimersByTime(60_000);
      signal?.throwIfAborted();
      return await keep();
    };
    const { conversation, records, events } = open(
      [step("echo 1 > a"), { text: "never" }, step("echo 2 > b"), { text: "done" }],
      sandbox,
      sandbox.workspace,
    );
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    expect(await turn(conversation, "go", stop.signal)).toMatchObject({ status: "interrupted" });
    vi.useRealTimers();
    expect(pointsIn(records)).toEqual([]);
    sandbox.restorePoint = keep;
    await turn(conversation);
    await turn(conversation);
    await conversation.close();
    expect(pointsIn(records)).toMatchObject([{ changes: [{ path: "a" }, { path: "b" }] }]);
    expect(events.filter(({ kind }) => kind === "warning")).toEqual([]);
  });

  it("leaves what its processes write later to the next restore point", async () => {
    const sandbox = pointSandbox();
    const { conversation, records } = open(
      [step("echo 1 > a"), step("cat a > b"), { text: "done" }],
      sandbox,
      sandbox.workspace,
      (model) => ({
        ...model,
        async *stream(request, signal) {
          const isSecond = JSON.stringify(request.input).includes("function_call_output");
          // What a process left running by the first call does between the calls.
          if (isSecond && !existsSync(join(sandbox.workspace, "b")))
            writeFileSync(join(sandbox.workspace, "late"), "");
          yield* model.stream(request, signal);
        },
      }),
    );
    await turn(conversation);
    await conversation.close();
    expect(pointsIn(records).flatMap(({ changes }) => changes)).toHaveLength(3);
  });
});

it("what a command writes while it is waited for belongs to the call that waits", async () => {
  const sandbox = pointSandbox();
  const records: SessionRecord[] = [];
  const script = "while [ ! -e go ]; do sleep 0.01; done; echo 1 > written";
  const played = playing(
    inOrder(
      { calls: [["exec_command", { cmd: script, login: false, yield_time_ms: 250 }]] },
      (request) => {
        const [, id = ""] = /session ID (\d+)/.exec(JSON.stringify(request.input)) ?? [];
        writeFileSync(join(sandbox.workspace, "go"), "");
        return { calls: [["write_stdin", { session_id: Number(id), chars: "", yield_time_ms: 5000 }]] };
      },
      { text: "done" },
    ),
  );
  const conversation = openConversation({
    model: played,
    sandbox,
    setting: { ...agentSetting, cwd: sandbox.workspace },
    session: { ...noSessionLog, append: (record) => void records.push(record) },
  });
  await turn(conversation);
  await conversation.close();
  expect(pointsIn(records)).toMatchObject([
    { call_id: "call_2", changes: [{ path: "go" }, { path: "written" }] },
  ]);
});

describe("no restore point is asked for", () => {
  it("after calls that only look", async () => {
    const sandbox = pointSandbox();
    let asked = 0;
    sandbox.restorePoint = () => {
      asked++;
      return Promise.resolve(null);
    };
    const { conversation } = open(
      [
        {
          calls: [
            ["list_dir", { dir_path: sandbox.workspace }],
            ["update_plan", { plan: [] }],
          ],
        },
        { text: "done" },
      ],
      sandbox,
      sandbox.workspace,
    );
    await turn(conversation);
    await conversation.close();
    expect(asked).toBe(0);
  });

  it("of a sandbox whose workspace is not copy-on-write", async () => {
    const sandbox = new MemorySandbox();
    const restorePoint = () => Promise.reject(new Error("asked"));
    const { conversation, events, records } = open(
      [step("true"), { text: "done" }],
      Object.assign(sandbox, { snapshotId: null, restorePoint }),
      "/tmp",
    );
    await turn(conversation);
    await expect(conversation.undo()).rejects.toMatchObject({
      code: "workspace.invalid",
      hint: expect.stringContaining("--workspace overlay"),
    });
    await conversation.close();
    expect(events.filter(({ kind }) => kind === "warning")).toEqual([]);
    expect(records.find(({ type }) => type === "brig.sandbox")?.payload).not.toHaveProperty("snapshot");
  });
});

it("a state that cannot be kept is one warning, and the turn goes on without further ones", async () => {
  const sandbox = pointSandbox();
  let asked = 0;
  sandbox.restorePoint = () => {
    asked++;
    return Promise.reject(new BrigError("the disk is full", { code: "file.failed" }));
  };
  const { conversation, events } = open(
    [step("echo 1 > a"), step("echo 2 > a"), { text: "done" }],
    sandbox,
    sandbox.workspace,
  );
  expect(await turn(conversation)).toMatchObject({ status: "completed" });
  await conversation.close();
  expect(asked).toBe(1);
  const warnings = events.flatMap((event) => (event.kind === "warning" ? [event.message] : []));
  expect(warnings).toEqual([expect.stringContaining("the disk is full")]);
});

describe("undo", () => {
  it("puts back what the last call changed, records it, and tells the model", async () => {
    const sandbox = pointSandbox();
    const file = join(sandbox.workspace, "a");
    const { conversation, records, requests } = open(
      [step("echo 1 > a"), step("echo 2 > a; echo > b"), { text: "one" }, { text: "two" }],
      sandbox,
      sandbox.workspace,
    );
    await turn(conversation);
    expect(await conversation.undo()).toMatchObject({ undone: { number: 2 }, restores: 1 });
    expect(readFileSync(file, "utf8")).toBe("1\n");
    await turn(conversation, "and now?");
    await conversation.close();
    expect(records.find(({ type }) => type === "brig.undo")?.payload).toMatchObject({
      snapshot: "tree-1",
      point: 3,
      undone: 2,
      restores: 1,
      count: 2,
    });
    const said = requests
      .at(-1)
      ?.input.flatMap((item) => (item.type === "message" ? [messageText(item)] : []));
    const told = said?.filter((text) => text.startsWith("<workspace_state>")) ?? [];
    expect(told).toHaveLength(1);
    expect(told[0]).toContain('"a", "b"');
    expect(said?.indexOf(told[0] ?? "")).toBeLessThan(said?.indexOf("and now?") ?? 0);
  });

  it("is null when nothing is left to undo, and then says nothing to the model", async () => {
    const sandbox = pointSandbox();
    const { conversation, records } = open([step("echo 1 > a"), { text: "one" }], sandbox, sandbox.workspace);
    await turn(conversation);
    expect(await conversation.undo()).not.toBeNull();
    const before = records.length;
    expect(await conversation.undo()).toBeNull();
    expect(records).toHaveLength(before);
    expect(existsSync(join(sandbox.workspace, "a"))).toBe(false);
    await conversation.close();
  });

  it("is refused during a turn", async () => {
    const sandbox = pointSandbox();
    const { conversation } = open([step("true"), { text: "one" }], sandbox, sandbox.workspace);
    const running = turn(conversation);
    await expect(conversation.undo()).rejects.toThrow(TypeError);
    await running;
    await conversation.close();
  });
});

it("an agent that shares the sandbox leaves restore points of the same workspace, under its own events", async () => {
  const sandbox = pointSandbox();
  const { conversation, events } = openPlayed(
    inOrder(
      { calls: [["spawn_agent", { message: "write" }]] },
      (request) => ({ calls: [["wait", { ids: spawnedIds(request) }]] }),
      step(`echo 2 > ${sandbox.workspace}/b`),
      { text: "done" },
    ),
    [inOrder(step(`echo 1 > ${sandbox.workspace}/a`), { text: "written" })],
    { sandbox: () => Promise.resolve(sandbox) },
  );
  await conversation.runTurn({ prompt: "go" });
  await conversation.close();
  const points = events.flatMap((event) => {
    const inner = event.kind === "agent-event" ? event.event : event;
    return inner.kind === "restore-point-created"
      ? [[event.kind === "agent-event", inner.snapshot, inner.point, inner.changes[0]?.path]]
      : [];
  });
  expect(points).toEqual([
    [true, "tree-1", 1, "a"],
    [false, "tree-1", 2, "b"],
  ]);
});

it("the model is told once, before its first prompt, that the workspace is not as it left it", async () => {
  const records: SessionRecord[] = [];
  const played = playing(inOrder({ text: "one" }, { text: "two" }));
  const conversation = openConversation({
    model: played,
    sandbox: new MemorySandbox(),
    setting: agentSetting,
    initialItems: [],
    workspaceLoss: "The kept files are gone.",
    session: { ...noSessionLog, append: (record) => void records.push(record) },
  });
  await turn(conversation);
  await turn(conversation);
  await conversation.close();
  const said = played.requests
    .at(-1)
    ?.input.flatMap((item) => (item.type === "message" ? [messageText(item)] : []));
  expect(said?.filter((text) => text.includes("The kept files are gone."))).toHaveLength(1);
  expect(said?.findIndex((text) => text.includes("gone"))).toBeLessThan(said?.indexOf("go") ?? 0);
  expect(JSON.stringify(records).match(/The kept files are gone/g)).toHaveLength(1);
});
