import type { AgentsOptions } from "../../src/agent/agents/agents-options.js";
import { openConversation } from "../../src/agent/conversation.js";
import type { ConversationOptions } from "../../src/agent/conversation-options.js";
import { isToolOutput, messageText, outputText, type ResponseItem } from "../../src/agent/model/items.js";
import type { ModelClient, ModelEvent, ModelRequest } from "../../src/agent/model/model-client.js";
import type { SessionSetting } from "../../src/agent/session/setting.js";
import type { AgentEvent } from "../../src/agent/turn/events.js";
import { MemorySandbox } from "./memory-sandbox.js";

export const agentSetting: SessionSetting = {
  cwd: "/tmp",
  sandboxMode: "workspace-write",
  network: { kind: "none" },
  writableRoots: [],
  shell: "bash",
  timezone: "UTC",
};

/** What a model says and calls. */
export interface PlayedAnswer {
  text?: string;
  calls?: [name: string, args: object][];
}

export type Player = (request: ModelRequest, signal: AbortSignal) => PlayedAnswer | Promise<PlayedAnswer>;

/** A model that answers as the function says, after `thoughts`, and keeps what it was asked. */
export function playing(
  player: Player,
  model = "scripted",
  thoughts: readonly ResponseItem[] = [],
): ModelClient & { requests: ModelRequest[] } {
  const requests: ModelRequest[] = [];
  let calls = 0;
  return {
    provider: "scripted",
    model,
    maxStreamRetries: 0,
    requests,
    async *stream(request, signal): AsyncIterable<ModelEvent> {
      requests.push(request);
      const { text, calls: made = [] } = await player(request, signal);
      for (const item of thoughts) yield { kind: "item", item };
      const content = [{ type: "output_text" as const, text: text ?? "" }];
      if (text !== undefined) yield { kind: "item", item: { type: "message", role: "assistant", content } };
      for (const [name, args] of made) {
        const call = { call_id: `call_${++calls}`, name, arguments: JSON.stringify(args) };
        yield { kind: "item", item: { type: "function_call", ...call } };
      }
      const usage = { inputTokens: 10, cachedInputTokens: 0, outputTokens: 5, reasoningOutputTokens: 0 };
      yield { kind: "completed", usage };
    },
  };
}

/** Answers one request after the other. */
export function inOrder(...answers: (PlayedAnswer | Player)[]): Player {
  let next = 0;
  return async (request, signal) => {
    const answer = answers[next++] ?? { text: "nothing more" };
    return typeof answer === "function" ? await answer(request, signal) : answer;
  };
}

/** Never answers. */
export const untilAborted: Player = (_, signal) =>
  new Promise((_resolve, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });

/** Waits for the agent that was started last. */
export const waitForIt: Player = (request) => ({
  calls: [["wait_for_agent", { targets: [spawnedId(request)] }]],
});

export function outputsIn(items: readonly ResponseItem[]): string[] {
  return items.filter(isToolOutput).map(outputText);
}

/** All outputs that the last request contains. */
export function lastOutputs({ requests }: { requests: readonly ModelRequest[] }): string[] {
  return outputsIn(requests.at(-1)?.input ?? []);
}

export function userTexts(request: ModelRequest | undefined): string[] {
  return (request?.input ?? []).flatMap((item) =>
    item.type === "message" && item.role === "user" ? [messageText(item)] : [],
  );
}

/** The ids of the agents that were started, in their order. */
export function spawnedIds(request: ModelRequest): string[] {
  return outputsIn(request.input).flatMap((text) => /"agent_id":"([^"]+)"/.exec(text)?.[1] ?? []);
}

export function spawnedId(request: ModelRequest): string {
  return spawnedIds(request).at(-1) ?? "";
}

/** Opens a conversation that plays `root`, whose agents play `children` in the order of their start. */
export function openPlayed(
  root: Player,
  children: readonly Player[],
  { agents, ...options }: Partial<ConversationOptions> & { agents?: AgentsOptions } = {},
) {
  const events: AgentEvent[] = [];
  const sandboxes: MemorySandbox[] = [];
  const model = playing(root);
  const childModels = children.map((child) => playing(child));
  let next = 0;
  const conversation = openConversation({
    model,
    sandbox: () => {
      const sandbox = new MemorySandbox();
      sandboxes.push(sandbox);
      return Promise.resolve(sandbox);
    },
    setting: agentSetting,
    agents: {
      openModel: () => Promise.resolve(childModels[next++] ?? playing(() => ({ text: "unexpected" }))),
      ...agents,
    },
    ...options,
    onEvent: (event) => events.push(event),
  });
  return { conversation, events, model, children: childModels, sandboxes };
}
