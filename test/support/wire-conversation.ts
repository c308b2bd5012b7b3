import { openConversation } from "../../src/agent/conversation.js";
import type { ConversationOptions } from "../../src/agent/conversation-options.js";
import { createModelClient } from "../../src/agent/model/create-model-client.js";
import type { ModelProvider } from "../../src/agent/model/provider.js";
import type { SessionSetting } from "../../src/agent/session/setting.js";
import type { SessionLog, SessionRecord } from "../../src/agent/session/write/session-file.js";
import type { AgentEvent } from "../../src/agent/turn/events.js";
import { MemorySandbox } from "./memory-sandbox.js";
import { localProvider, type Reply, startResponsesServer } from "./responses-server.js";

export const wireSetting: SessionSetting = {
  cwd: "/tmp",
  sandboxMode: "workspace-write",
  network: { kind: "none" },
  writableRoots: [],
  shell: "bash",
  timezone: "UTC",
};

interface WireOptions extends Partial<Omit<ConversationOptions, "model">> {
  model?: string;
  provider?: Partial<ModelProvider>;
}

/** A conversation with an endpoint on loopback, through the real SDK. `clock` is its clock. */
export async function openWireConversation(
  replies: readonly Reply[],
  { model = "m", provider = {}, ...options }: WireOptions = {},
) {
  const server = await startResponsesServer(replies);
  const events: AgentEvent[] = [];
  const records: SessionRecord[] = [];
  const clock = { now: new Date("2026-11-05T10:00:00Z") };
  const conversation = openConversation({
    model: createModelClient({ provider: localProvider(server.url, provider), model, threadId: "t" }),
    sandbox: () => Promise.resolve(new MemorySandbox()),
    setting: wireSetting,
    session: recordingLog(records),
    now: () => clock.now,
    random: () => 0.5,
    ...options,
    onEvent: (event) => events.push(event),
  });
  return {
    conversation,
    clock,
    events,
    records,
    requests: server.requests,
    /** Roles and texts of the nth request's items, from one on. */
    said: (request: number, from = 0) => server.requests[request]?.body.input.slice(from).map(shown) ?? [],
    async [Symbol.asyncDispose]() {
      await conversation.close();
      await server[Symbol.asyncDispose]();
    },
  };
}

function recordingLog(records: SessionRecord[]): SessionLog {
  return {
    path: null,
    trouble: null,
    append: (record) => void records.push(record),
    close: () => undefined,
  };
}

function shown(item: Record<string, unknown>): string {
  if (item.type !== "message") return String(item.type);
  const parts = item.content as { text?: string }[];
  return `${String(item.role)}: ${parts.map(({ text }) => text ?? "picture").join(" | ")}`;
}
