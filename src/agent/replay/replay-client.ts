import { isToolOutput, outputText, type ResponseItem, type ToolCallItem } from "../model/items.js";
import type { ModelClient } from "../model/model-client.js";
import { parseItem } from "../model/parse-item.js";
import { outputParts } from "./output-parts.js";
import type { RecordedCall } from "./replay-recording.js";

export interface ReplayClientOptions {
  /** The model the calls were recorded with: tools and truncation depend on it. */
  model: string;
  /** Changes the input of each call, for example to another directory. Default: unchanged. */
  adapt?: ((input: string) => string) | undefined;
}

/**
 * A model that makes a session's calls again, response by response, whatever their outputs. Ids of command
 * sessions are random, so a recorded id in a call is replaced by the id that the same command has now.
 */
export function createReplayClient(
  responses: readonly (readonly RecordedCall[])[],
  { model, adapt = (input) => input }: ReplayClientOptions,
): ModelClient {
  const sessions = new Map<number, number>();
  const recorded = new Map(responses.flat().map((call) => [call.replayId, call]));
  let next = 0;
  return {
    provider: "replay",
    model,
    maxStreamRetries: 0,
    async *stream({ input }, signal) {
      signal.throwIfAborted();
      learnSessions(input, { recorded, sessions });
      for (const call of responses[next++] ?? []) {
        const adapted = { ...call, input: adapt(withSession(call, sessions)) };
        yield { kind: "item", item: callItem(adapted) };
      }
      yield { kind: "completed", usage: null };
    },
  };
}

export function sessionIdIn(output: string): number | null {
  const head = outputParts(output)?.head ?? "";
  const digits = /^Process running with session ID (\d+)$/m.exec(head)?.[1];
  return digits === undefined ? null : Number(digits);
}

function learnSessions(
  input: readonly ResponseItem[],
  { recorded, sessions }: { recorded: Map<string, RecordedCall>; sessions: Map<number, number> },
): void {
  for (const item of input.filter(isToolOutput)) {
    const call = recorded.get(item.call_id);
    if (call?.name !== "exec_command") continue;
    const before = sessionIdIn(outputText(call));
    const now = sessionIdIn(outputText(item));
    if (before !== null && now !== null) sessions.set(before, now);
  }
}

function withSession({ name, input }: RecordedCall, sessions: ReadonlyMap<number, number>): string {
  if (name !== "write_stdin") return input;
  return input.replace(/("session_id"\s*:\s*)(\d+)/, (whole, key: string, digits: string) => {
    const now = sessions.get(Number(digits));
    return now === undefined ? whole : `${key}${now}`;
  });
}

function callItem({ replayId, name, input, isFreeform }: RecordedCall): ToolCallItem {
  if (isFreeform) return { type: "custom_tool_call", call_id: replayId, name, input };
  if (name === "local_shell") return localShellItem(replayId, input);
  return { type: "function_call", call_id: replayId, name, arguments: input };
}

function localShellItem(callId: string, action: string): ToolCallItem {
  const item = parseItem({ type: "local_shell_call", call_id: callId, action: JSON.parse(action) });
  if (item.type === "local_shell_call") return item;
  throw new TypeError("an item is of the kind it was made as");
}
