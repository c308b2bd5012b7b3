import { describe, expect, it, onTestFinished } from "vitest";
import { parseScript } from "../../../../../src/agent/model/script/script.js";
import { createScriptedClient } from "../../../../../src/agent/model/script/scripted-client.js";
import { createThreadId } from "../../../../../src/agent/thread-id.js";
import { BrigError } from "../../../../../src/errors.js";
import type { PrepareThread } from "../../../../../src/services/mcp-server/codex/prepare-thread.js";
import type { Caller } from "../../../../../src/services/mcp-server/codex/questions/current-caller.js";
import { ThreadList } from "../../../../../src/services/mcp-server/codex/thread-list.js";
import { MemorySandbox } from "../../../../support/memory-sandbox.js";

const setting = {
  cwd: "/work",
  sandboxMode: "workspace-write",
  network: { kind: "none" as const },
  writableRoots: [],
  shell: "bash",
  timezone: "UTC",
};
const script = `steps:
  - text: One.
  - text: Two.
  - text: Three.
`;

function listOf(options: { maxThreads?: number; idleMs?: number } = {}) {
  const sandboxes: MemorySandbox[] = [];
  const requests: string[] = [];
  const prepare: PrepareThread = async (request) => {
    requests.push(request.kind === "begin" ? "begin" : `continue ${JSON.stringify(request.settings)}`);
    await new Promise((resolve) => setImmediate(resolve));
    if (request.kind === "continue" && request.settings === null)
      throw new BrigError("there is no such session", { code: "session.unknown" });
    return {
      threadId: request.kind === "continue" ? request.threadId : createThreadId(new Date()),
      model: createScriptedClient(parseScript(script, "play.yaml", { hasManyTurns: true })),
      setting,
      sandbox: () => {
        const sandbox = new MemorySandbox();
        sandboxes.push(sandbox);
        return Promise.resolve(sandbox);
      },
    };
  };
  const threads = new ThreadList({ prepare, ...options });
  const owner = {};
  onTestFinished(async () => await threads.closeOf(owner));
  return { threads, sandboxes, requests, opener: { owner, canAsk: false } };
}

const caller = (signal = new AbortController().signal): Caller => ({
  requestId: 1,
  signal,
  onEvent: () => undefined,
  ask: null,
});

describe("the open sessions", () => {
  it("are as many as may be, however many are asked for at once", async () => {
    const { threads, sandboxes, opener } = listOf({ maxThreads: 3 });
    const begun = await Promise.allSettled(Array.from({ length: 50 }, () => threads.begin({}, opener)));
    const opened = begun.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
    expect(opened).toHaveLength(3);
    expect(begun.find(({ status }) => status === "rejected")).toMatchObject({
      reason: { code: "usage.invalid", message: "3 sessions are at work already" },
    });
    for (const thread of opened) await thread.takeTurn("go", caller());
    expect(sandboxes).toHaveLength(3);
  });

  it("make room for a new one: the one that has been idle longest is closed, and comes back", async () => {
    const { threads, sandboxes, requests, opener } = listOf({ maxThreads: 2 });
    const [first, second] = [await threads.begin({ cwd: "a" }, opener), await threads.begin({}, opener)];
    await first.takeTurn("go", caller());
    await second.takeTurn("go", caller());
    const third = await threads.begin({}, opener);
    expect(sandboxes.map(({ isClosed }) => isClosed)).toEqual([true, false, false]);
    await third.takeTurn("go", caller());
    const again = await threads.find(first.id, opener);
    expect(again.id).toBe(first.id);
    expect(requests.at(-1)).toBe('continue {"cwd":"a"}');
    await again.takeTurn("on", caller());
  });

  it("are opened once, even if two calls ask for one at the same time", async () => {
    const { threads, requests, opener } = listOf({ maxThreads: 1 });
    const first = await threads.begin({}, opener);
    await first.takeTurn("go", caller());
    await (await threads.begin({}, opener)).takeTurn("go", caller());
    const found = await Promise.all([threads.find(first.id, opener), threads.find(first.id, opener)]);
    expect(new Set(found).size).toBe(1);
    expect(requests.filter((one) => one.startsWith("continue"))).toHaveLength(1);
    const turns = await Promise.all(found.map((thread) => thread.takeTurn("on", caller())));
    expect(turns.map(({ lastMessage }) => lastMessage)).toEqual(["One.", "Two."]);
  });

  it("give an idle session's sandbox back", async () => {
    const { threads, sandboxes, opener } = listOf({ idleMs: 1 });
    const thread = await threads.begin({}, opener);
    await thread.takeTurn("go", caller());
    await expect.poll(() => sandboxes.map(({ isClosed }) => isClosed)).toEqual([true]);
    (await threads.find(thread.id, opener)).owner = opener.owner;
    expect(await thread.takeTurn("on", caller())).toMatchObject({ lastMessage: "Two." });
  });

  it("are closed with the client that called them last", async () => {
    const { threads, sandboxes, opener } = listOf();
    const mine = await threads.begin({}, opener);
    await mine.takeTurn("go", caller());
    const other = { owner: {}, canAsk: false };
    const shared = await threads.begin({}, opener);
    await shared.takeTurn("go", caller());
    await (await threads.find(shared.id, other)).takeTurn("on", caller());
    await threads.closeOf(opener.owner);
    expect(sandboxes.map(({ isClosed }) => isClosed)).toEqual([true, false]);
    await threads.closeOf(other.owner);
    expect(sandboxes.map(({ isClosed }) => isClosed)).toEqual([true, true]);
  });

  it("let a waiting call go when it is cancelled", async () => {
    const { threads, opener } = listOf();
    const thread = await threads.begin({}, opener);
    const running = thread.takeTurn("go", caller());
    await threads.find(thread.id, opener);
    const stop = new AbortController();
    const waiting = thread.takeTurn("never", caller(stop.signal));
    stop.abort(new BrigError("cancelled", { code: "aborted" }));
    await expect(waiting).rejects.toMatchObject({ code: "aborted" });
    expect(await running).toMatchObject({ lastMessage: "One." });
  });
});
