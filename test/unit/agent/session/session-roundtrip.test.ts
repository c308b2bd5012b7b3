import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openConversation } from "../../../../src/agent/conversation.js";
import type { ConversationOptions } from "../../../../src/agent/conversation-options.js";
import type { ResponseItem } from "../../../../src/agent/model/items.js";
import type { ModelClient } from "../../../../src/agent/model/model-client.js";
import { parseScript } from "../../../../src/agent/model/script/script.js";
import { createScriptedClient } from "../../../../src/agent/model/script/scripted-client.js";
import { loadSession } from "../../../../src/agent/session/read/session-reader.js";
import { continueSessionFile, openSessionFile } from "../../../../src/agent/session/write/session-file.js";
import { normalised } from "../../../../src/agent/turn/history.js";
import { MemorySandbox } from "../../../support/memory-sandbox.js";

const now = () => new Date("2026-01-02T03:04:05Z");
let home = "";

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "brig-session-"));
});

afterEach(() => {
  rmSync(home, { recursive: true });
});

/** A model that plays a script, and what it was asked. */
function playing(yaml: string): { model: ModelClient; asked: (readonly ResponseItem[])[] } {
  const scripted = createScriptedClient(parseScript(yaml, "play.yaml", { hasManyTurns: true }));
  const asked: (readonly ResponseItem[])[] = [];
  return {
    asked,
    model: {
      ...scripted,
      stream(request, signal) {
        asked.push(request.input);
        return scripted.stream(request, signal);
      },
    },
  };
}

const setting = {
  cwd: "/tmp",
  sandboxMode: "workspace-write",
  network: { kind: "none" as const },
  writableRoots: [],
  shell: "bash",
  timezone: "UTC",
};

function open(options: Partial<ConversationOptions> & Pick<ConversationOptions, "model">) {
  return openConversation({ sandbox: () => Promise.resolve(new MemorySandbox()), setting, now, ...options });
}

function recordsIn(file: string | null) {
  const lines = readFileSync(file ?? "", "utf8")
    .trimEnd()
    .split("\n");
  return lines.map((line) => JSON.parse(line) as { type: string; payload: Record<string, unknown> });
}

const call = "calls: [{ shell: { command: [sh, -c, 'echo hi; exit 3'] } }]";

describe("a session that goes on", () => {
  it("asks with what the file holds, after calls, a compaction and another process", async () => {
    const first = playing(
      `steps: [{ ${call} }, { text: one }, { text: a summary }, { ${call} }, { text: two }]`,
    );
    const session = await openSessionFile({ home, threadId: "t-1", now });
    const conversation = open({ model: first.model, session, threadId: "t-1" });
    await conversation.runTurn({ prompt: "first" });
    expect((await conversation.compact()).kind).toBe("compacted");
    const compacted = await loadSession(session.path ?? "");
    await conversation.runTurn({ prompt: "second" });
    await conversation.close();
    const afterCompaction = first.asked[3] ?? [];
    expect(compacted.items.length).toBeGreaterThan(1);
    expect(afterCompaction.slice(0, compacted.items.length)).toEqual(normalised(compacted.items));

    const recorded = await loadSession(session.path ?? "");
    const second = playing("steps: [{ text: three }]");
    const resumed = open({
      model: second.model,
      session: await continueSessionFile(session.path ?? "", { now }),
      threadId: recorded.threadId,
      initialItems: recorded.items,
      sentContext: recorded.sentContext,
      earlierUse: recorded,
    });
    await resumed.runTurn({ prompt: "third" });
    await resumed.close();
    const [asked = []] = second.asked;
    expect(asked.slice(0, -1)).toEqual(normalised(recorded.items));
    expect(asked.at(-1)).toMatchObject({ role: "user", content: [{ text: "third" }] });
    expect((await loadSession(session.path ?? "")).items).toHaveLength(asked.length + 1);
    const turns = recordsIn(session.path).filter(({ type }) => type === "brig.turn");
    expect(turns.map(({ payload }) => payload.number)).toEqual([1, 2, 3]);
  });

  it("has used what it had used before, and what it uses now", async () => {
    const usage = { inputTokens: 10, cachedInputTokens: 4, outputTokens: 3, reasoningOutputTokens: 1 };
    const { model } = playing("steps: [{ text: hi }]");
    const conversation = open({ model, earlierUse: { usage, turns: 4 } });
    const { usage: total } = await conversation.runTurn({ prompt: "x" });
    await conversation.close();
    expect(total).toEqual(usage);
  });
});

describe("the record of a session", () => {
  it("tells of a call's exit code, and of a network that the sandbox has", async () => {
    const { model } = playing(`steps: [{ ${call} }, { text: done }]`);
    const session = await openSessionFile({ home, threadId: "t-1", now });
    const network = { kind: "full" as const };
    const conversation = open({ model, session, setting: { ...setting, network } });
    await conversation.runTurn({ prompt: "go" });
    await conversation.close();
    const payloadOf = (name: string) => recordsIn(session.path).find(({ type }) => type === name)?.payload;
    expect(payloadOf("brig.call")).toMatchObject({ name: "shell", exit_code: 3, success: false });
    expect(payloadOf("brig.egress")).toEqual({ sandbox_id: "memory", network: "full", log: null });
  });
});
