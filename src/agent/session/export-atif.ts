import { BrigError } from "../../errors.js";
import { jsonText } from "../../lib/json/json-text.js";
import { isTooDeep } from "../../lib/json/nesting.js";
import type { CallOutput, MessageItem } from "../model/items.js";
import type { TokenUsage } from "../model/model-client.js";
import { readSessionLines, type SessionLine } from "./read/session-lines.js";
import { tokenUsage } from "./read/session-reader.js";
import { type AgentStep, type SessionStep, type StepCall, stepsOf } from "./read/session-steps.js";

const SCHEMA_VERSION = "ATIF-v1.7";

/** The fields of a `brig.call` record that are exported. */
const costKeys = [
  "success",
  "duration_ms",
  "exit_code",
  "user_ms",
  "system_ms",
  "max_rss_bytes",
  "timed_out",
  "out_of_memory",
  "truncated_bytes",
  "escalated",
  "denied",
] as const;

/**
 * Converts a session to an ATIF trajectory, as pieces of JSON text, with one step in memory at a time. Calls
 * and outputs belong to the step of the response that made the calls. A file without any record is
 * `session.invalid`.
 */
export async function* atifDocument(
  path: string,
  { signal }: { signal?: AbortSignal | undefined } = {},
): AsyncIterable<string> {
  const about = await readAbout(path, readSessionLines(path, { signal }));
  const { session_id, agent } = about;
  const head = jsonText({ schema_version: SCHEMA_VERSION, session_id, agent }, 2);
  yield `${head.slice(0, -"\n}".length)},\n  "steps": [`;
  let count = 0;
  for await (const step of stepsOf(readSessionLines(path, { signal }))) {
    yield `${count === 0 ? "" : ","}\n${indented(atifStep(step), "    ")}`;
    count++;
  }
  const tail = { final_metrics: finalMetrics(about.usage, count), extra: about.extra };
  yield `\n  ],${jsonText(tail, 2).slice("{".length)}\n`;
}

interface About {
  session_id: string | undefined;
  agent: Record<string, unknown>;
  usage: TokenUsage | null;
  extra: Record<string, unknown>;
}

/** Reads what the document says before and after the steps. */
async function readAbout(path: string, lines: AsyncIterable<SessionLine>): Promise<About> {
  const about: About = {
    session_id: undefined,
    agent: { name: "brig", version: "unknown" },
    usage: null,
    extra: {},
  };
  const sandboxes: unknown[] = [];
  let unreadable = 0;
  let readable = 0;
  for await (const line of lines) {
    if (line.kind === "unreadable") unreadable++;
    else {
      readable++;
      readRecord(line.record, { about, sandboxes });
    }
  }
  if (readable === 0) throw new BrigError(`${path} is not a session file`, { code: "session.invalid" });
  if (sandboxes.length > 0) about.extra.sandboxes = sandboxes;
  if (unreadable > 0) about.extra.unreadable_lines = unreadable;
  return about;
}

function readRecord(
  record: Extract<SessionLine, { kind: "record" }>["record"],
  { about, sandboxes }: { about: About; sandboxes: unknown[] },
): void {
  if (record.type === "session_meta" && about.session_id === undefined) {
    const { id, originator, cli_version, cwd, model_provider, forked_from_id } = record.meta;
    about.session_id = id;
    about.agent = { name: originator ?? "brig", version: cli_version ?? "unknown" };
    about.extra = withoutNulls({ cwd, model_provider, forked_from_id });
  }
  if (record.type === "turn_context" && record.context.model) about.agent.model_name = record.context.model;
  if (record.type === "brig" && record.name === "sandbox") {
    // The place where brig keeps the states of the workspace means nothing elsewhere.
    const { snapshot: _, ...sandbox } = record.payload;
    sandboxes.push(sandbox);
  }
  if (record.type === "event_msg" && record.event.type === "token_count" && record.event.info)
    about.usage = tokenUsage(record.event.info.total_token_usage);
}

function atifStep(step: SessionStep): object {
  const frame = withoutNulls({ step_id: step.number, timestamp: step.timestamp, source: step.source });
  const isCopied = step.isCopied ? { is_copied_context: true } : {};
  if (step.source !== "agent") return { ...frame, message: messageOf(step.content), ...isCopied };
  return { ...frame, ...agentPart(step), ...isCopied };
}

function agentPart(step: AgentStep): object {
  const { text, reasoning, calls, usage, model, effort, ending } = step;
  const results = calls.filter(hasResult).map(resultOf);
  return {
    message: text,
    ...withoutNulls({ model_name: model, reasoning_effort: effort }),
    ...(reasoning === "" ? {} : { reasoning_content: reasoning }),
    ...(calls.length === 0 ? {} : { tool_calls: calls.map(callOf) }),
    ...(results.length === 0 ? {} : { observation: { results } }),
    ...(usage === null ? {} : { metrics: metricsOf(usage) }),
    llm_call_count: 1,
    ...(ending === null ? {} : { extra: { ending } }),
  };
}

function callOf({ callId, name, input, isFreeform }: StepCall): object {
  return {
    tool_call_id: callId,
    function_name: name,
    arguments: isFreeform ? { input } : argumentsOf(input),
  };
}

/** A model may send arguments that are not JSON, or JSON that is not an object. */
function argumentsOf(input: string): object {
  try {
    const value: unknown = JSON.parse(input);
    if (typeof value === "object" && value !== null && !Array.isArray(value) && !isTooDeep(value))
      return value;
  } catch {
    // Exported as text.
  }
  return { input };
}

function hasResult({ output, cost }: StepCall): boolean {
  return output !== null || cost !== null;
}

function resultOf({ callId, output, cost }: StepCall): object {
  const extra = Object.fromEntries(
    costKeys.flatMap((key) => (cost?.[key] === undefined ? [] : [[key, cost[key]]])),
  );
  return {
    source_call_id: callId,
    ...(output === null ? {} : { content: contentOf(output) }),
    ...(Object.keys(extra).length === 0 ? {} : { extra }),
  };
}

type ContentPart =
  | { type: "text"; text: string }
  | { type: "image"; source: { media_type: string; path: string } };

function contentOf(output: CallOutput): string | ContentPart[] {
  if (typeof output === "string") return output;
  return output.map((part) => (part.type === "input_text" ? textPart(part.text) : imagePart(part.image_url)));
}

function messageOf(content: MessageItem["content"]): string | ContentPart[] {
  const parts = content.map((part) => {
    if (part.type === "input_image") return imagePart(part.image_url);
    return textPart(part.type === "refusal" ? part.refusal : part.text);
  });
  const texts = parts.flatMap((part) => (part.type === "text" ? [part.text] : []));
  return texts.length === parts.length ? texts.join("\n") : parts;
}

function textPart(text: string): ContentPart {
  return { type: "text", text };
}

/** In ATIF a path may be a URL, so a data URL stays as it is. */
function imagePart(url: string): ContentPart {
  const media_type = /^data:([^;,]+)/.exec(url)?.[1] ?? "image/png";
  return { type: "image", source: { media_type, path: url } };
}

function metricsOf({
  inputTokens,
  outputTokens,
  cachedInputTokens,
  reasoningOutputTokens,
}: TokenUsage): object {
  return {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    cached_tokens: cachedInputTokens,
    extra: { reasoning_output_tokens: reasoningOutputTokens },
  };
}

function finalMetrics(usage: TokenUsage | null, steps: number): object {
  if (usage === null) return { total_steps: steps };
  return {
    total_prompt_tokens: usage.inputTokens,
    total_completion_tokens: usage.outputTokens,
    total_cached_tokens: usage.cachedInputTokens,
    total_steps: steps,
    extra: { total_reasoning_output_tokens: usage.reasoningOutputTokens },
  };
}

function withoutNulls(fields: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== null && value !== undefined),
  );
}

function indented(value: object, by: string): string {
  return jsonText(value, 2)
    .split("\n")
    .map((line) => `${by}${line}`)
    .join("\n");
}
