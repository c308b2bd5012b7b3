import { parseJson } from "../../../lib/json/parse-json.js";
import {
  isToolCall,
  isToolOutput,
  type MessageItem,
  messageText,
  outputText,
  type ResponseItem,
  type ToolCallItem,
  type ToolOutputItem,
} from "../items.js";
import type { ModelRequest } from "../model-client.js";

type ChatPart =
  | { type: "text"; text: string }
  | { type: "image_url"; image_url: { url: string; detail?: "high" } };

interface ChatToolCall {
  id: string;
  type: "function";
  function: { name: string; arguments: string };
}

export interface ChatMessage {
  role: "system" | "developer" | "user" | "assistant" | "tool";
  content: string | ChatPart[] | null;
  tool_calls?: ChatToolCall[];
  tool_call_id?: string;
  /** The model's reasoning, under the endpoint's name for it. */
  [reasoning: string]: unknown;
}

export interface ChatMessageOptions {
  reasoningField: string;
  keepsDeveloperRole: boolean;
}

type ReasoningItem = ResponseItem & { type: "reasoning" };
type AssistantMessage = MessageItem & { role: "assistant" };
type AssistantItem = AssistantMessage | ReasoningItem | ToolCallItem;

/**
 * The conversation as Chat Completions messages. Endpoints insist that the outputs directly follow the
 * message with their calls, so consecutive texts and calls become one message. Items that Chat cannot express
 * are left out.
 */
export function chatMessages(request: ModelRequest, options: ChatMessageOptions): ChatMessage[] {
  const { head, items } = splitHead(request, options);
  const conversation = new ChatConversation(items, options);
  return [...head, ...conversation.messages()];
}

/** The prompt templates of many models accept one system message only, and only at the beginning. */
function splitHead(
  { instructions, input }: ModelRequest,
  { keepsDeveloperRole }: ChatMessageOptions,
): { head: ChatMessage[]; items: readonly ResponseItem[] } {
  const firstOther = input.findIndex((item) => !isGuidance(item));
  const count = keepsDeveloperRole ? 0 : firstOther === -1 ? input.length : firstOther;
  const guidance = input.slice(0, count).flatMap((item) => (isGuidance(item) ? [textOf(item)] : []));
  const content = [instructions, ...guidance].filter((text) => text !== "").join("\n\n");
  return { head: content === "" ? [] : [{ role: "system", content }], items: input.slice(count) };
}

class ChatConversation {
  readonly #items: readonly ResponseItem[];
  readonly #options: ChatMessageOptions;
  readonly #outputs: ReadonlyMap<ToolCallItem, ToolOutputItem>;
  /** Reasoning is sent back only as long as the model works on the last user message. */
  readonly #lastUserIndex: number;

  constructor(items: readonly ResponseItem[], options: ChatMessageOptions) {
    this.#items = items;
    this.#options = options;
    this.#outputs = pairOutputs(items);
    this.#lastUserIndex = items.findLastIndex((item) => item.type === "message" && item.role === "user");
  }

  *messages(): Iterable<ChatMessage> {
    let run: AssistantItem[] = [];
    for (const [index, item] of this.#items.entries()) {
      if (isAssistantItem(item)) {
        if (item.type !== "reasoning" || index > this.#lastUserIndex) run.push(item);
      } else if (item.type === "message" || isToolOutput(item)) {
        // An output ends the message. It has already been put after its call.
        yield* this.#runMessages(run);
        run = [];
        if (item.type === "message") yield this.#inputMessage(item);
      }
    }
    yield* this.#runMessages(run);
  }

  #runMessages(run: readonly AssistantItem[]): Iterable<ChatMessage> {
    const calls = run.filter(isToolCall);
    return calls.length === 0 ? this.#textMessages(run) : this.#callMessages(run, calls);
  }

  *#textMessages(run: readonly AssistantItem[]): Iterable<ChatMessage> {
    const messages: ChatMessage[] = [];
    let thoughts: string[] = [];
    for (const item of run) {
      if (item.type === "reasoning") thoughts.push(thoughtOf(item));
      if (item.type !== "message") continue;
      const content = textOf(item);
      // A response that was requested again may repeat its text.
      if (messages.at(-1)?.content === content) continue;
      messages.push({ role: "assistant", content, ...this.#reasoning(thoughts) });
      thoughts = [];
    }
    const last = messages.at(-1);
    if (last !== undefined && last[this.#options.reasoningField] === undefined)
      Object.assign(last, this.#reasoning(thoughts));
    yield* messages;
  }

  *#callMessages(run: readonly AssistantItem[], calls: readonly ToolCallItem[]): Iterable<ChatMessage> {
    const texts = run.flatMap((item) => (item.type === "message" ? [textOf(item)] : []));
    const said = texts.filter((text, index) => text !== "" && text !== texts[index - 1]);
    const thoughts = run.flatMap((item) => (item.type === "reasoning" ? [thoughtOf(item)] : []));
    yield {
      role: "assistant",
      content: said.length === 0 ? null : said.join("\n\n"),
      ...this.#reasoning(thoughts),
      tool_calls: calls.map(toolCall),
    };
    for (const call of calls) {
      const output = this.#outputs.get(call);
      const content = output === undefined ? "aborted" : outputText(output);
      yield { role: "tool", tool_call_id: call.call_id, content };
    }
    for (const call of calls) yield* pictureMessage(this.#outputs.get(call));
  }

  #reasoning(thoughts: readonly string[]): Record<string, string> {
    const text = thoughts.filter((thought) => thought !== "").join("\n\n");
    return text === "" ? {} : { [this.#options.reasoningField]: text };
  }

  #inputMessage(item: MessageItem): ChatMessage {
    const role = item.role === "user" || this.#options.keepsDeveloperRole ? item.role : "user";
    return { role, content: contentOf(item) };
  }
}

/** The output of a call is the next one with its id: some endpoints reuse ids in a session. */
function pairOutputs(items: readonly ResponseItem[]): Map<ToolCallItem, ToolOutputItem> {
  const next = new Map<string, ToolOutputItem>();
  const pairs = new Map<ToolCallItem, ToolOutputItem>();
  for (const item of items.toReversed()) {
    if (isToolOutput(item)) next.set(item.call_id, item);
    const output = isToolCall(item) ? next.get(item.call_id) : undefined;
    if (isToolCall(item) && output !== undefined) pairs.set(item, output);
  }
  return pairs;
}

function toolCall(item: ToolCallItem): ChatToolCall {
  return { id: item.call_id, type: "function", function: calledFunction(item) };
}

function calledFunction(item: ToolCallItem): ChatToolCall["function"] {
  if (item.type === "custom_tool_call")
    return { name: item.name, arguments: JSON.stringify({ input: item.input }) };
  if (item.type === "function_call") return { name: item.name, arguments: validArguments(item.arguments) };
  const { command, working_directory, timeout_ms } = item.action;
  const workdir = working_directory ?? undefined;
  return {
    name: "shell",
    arguments: JSON.stringify({ command, workdir, timeout_ms: timeout_ms ?? undefined }),
  };
}

/** Endpoints refuse the whole conversation if the arguments of a past call are not a JSON object. */
function validArguments(text: string): string {
  return isJsonObject(text) ? text : JSON.stringify({ unreadable_arguments: text });
}

function isJsonObject(text: string): boolean {
  const value = parseJson(text);
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Chat has no images in tool outputs, so they follow as a message of the user. */
function* pictureMessage(answer: ToolOutputItem | undefined): Iterable<ChatMessage> {
  if (answer === undefined || typeof answer.output === "string") return;
  const { call_id, output } = answer;
  const pictures = output.flatMap((part) =>
    part.type === "input_image" ? [imagePart(part.image_url, part.detail)] : [],
  );
  if (pictures.length === 0) return;
  yield { role: "user", content: [{ type: "text", text: `What the call ${call_id} shows:` }, ...pictures] };
}

function contentOf(item: MessageItem): string | ChatPart[] {
  if (!item.content.some(({ type }) => type === "input_image")) return textOf(item);
  return item.content.map((part): ChatPart => {
    if (part.type === "input_image") return imagePart(part.image_url);
    return { type: "text", text: part.type === "refusal" ? part.refusal : part.text };
  });
}

function imagePart(url: string, detail?: "high" | "original"): ChatPart {
  return { type: "image_url", image_url: { url, ...(detail === undefined ? {} : { detail: "high" }) } };
}

function textOf(item: MessageItem): string {
  return item.role === "assistant"
    ? messageText(item)
    : item.content.flatMap((part) => ("text" in part ? [part.text] : [])).join("\n\n");
}

function thoughtOf({ content = [] }: ReasoningItem): string {
  return content.map(({ text }) => text).join("");
}

function isGuidance(item: ResponseItem): item is MessageItem {
  return item.type === "message" && (item.role === "developer" || item.role === "system");
}

function isAssistantItem(item: ResponseItem): item is AssistantItem {
  return (
    item.type === "reasoning" || isToolCall(item) || (item.type === "message" && item.role === "assistant")
  );
}
