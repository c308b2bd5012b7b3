import { z } from "zod";
import { isTooDeep } from "../../lib/json/nesting.js";
import { tokensOfBytes } from "../../sandbox/index.js";

const textPart = z.object({ type: z.enum(["input_text", "output_text"]), text: z.string() });
const imagePart = z.object({ type: z.literal("input_image"), image_url: z.string() });
const refusalPart = z.object({ type: z.literal("refusal"), refusal: z.string() });

/** Drops parts of unknown types, so that a new kind of part does not make the whole item invalid. */
function partsOf(types: readonly string[]) {
  return z
    .array(z.looseObject({ type: z.string() }))
    .transform((parts) => parts.filter(({ type }) => types.includes(type)));
}

/** The endpoint's id of the item. Only some endpoints accept it in later requests. */
const id = z.string().optional().catch(undefined);

const messageItem = z.object({
  id,
  type: z.literal("message"),
  role: z.enum(["user", "assistant", "developer", "system"]),
  content: partsOf(["input_text", "output_text", "input_image", "refusal"]).pipe(
    z.array(z.discriminatedUnion("type", [textPart, imagePart, refusalPart])),
  ),
  /** Models that send a phase expect it back in later requests. */
  phase: z.enum(["commentary", "final_answer"]).optional().catch(undefined),
});

const reasoningItem = z.object({
  id,
  type: z.literal("reasoning"),
  summary: partsOf(["summary_text"])
    .nullish()
    .transform((parts) => parts ?? [])
    .pipe(z.array(z.object({ type: z.literal("summary_text"), text: z.string() }))),
  /** The unencrypted reasoning of models that show it. */
  content: z
    .array(z.object({ type: z.enum(["reasoning_text", "text"]), text: z.string() }))
    .min(1)
    .optional()
    .catch(undefined),
  encrypted_content: z.string().nullish(),
});

const functionCallItem = z.object({
  id,
  type: z.literal("function_call"),
  name: z.string(),
  /** The namespace of the function, if it belongs to one. */
  namespace: z.string().optional().catch(undefined),
  arguments: z.string(),
  call_id: z.string(),
});

const outputPart = z.discriminatedUnion("type", [
  z.object({ type: z.literal("input_text"), text: z.string() }),
  z.object({
    type: z.literal("input_image"),
    image_url: z.string(),
    detail: z.enum(["high", "original"]).optional().catch(undefined),
  }),
]);

const output = z.union([z.string(), z.array(outputPart)]);

const functionCallOutputItem = z.object({
  id,
  type: z.literal("function_call_output"),
  call_id: z.string(),
  output,
});

const customToolCallItem = z.object({
  id,
  type: z.literal("custom_tool_call"),
  name: z.string(),
  input: z.string(),
  call_id: z.string(),
});

const customToolCallOutputItem = z.object({
  id,
  type: z.literal("custom_tool_call_output"),
  call_id: z.string(),
  output,
});

/** A call of the hosted `local_shell` tool. Its output is a `function_call_output`. */
const localShellCallItem = z.object({
  id,
  type: z.literal("local_shell_call"),
  call_id: z.string({ error: "LocalShellCall without call_id or id" }),
  status: z.enum(["completed", "in_progress", "incomplete"]).catch("completed"),
  action: z.object({
    type: z.literal("exec"),
    command: z.array(z.string()),
    working_directory: z.string().nullish(),
    timeout_ms: z.number().nullish(),
    env: z.record(z.string(), z.string()).nullish(),
    user: z.string().nullish(),
  }),
});

const knownItem = z.discriminatedUnion("type", [
  messageItem,
  reasoningItem,
  functionCallItem,
  functionCallOutputItem,
  customToolCallItem,
  customToolCallOutputItem,
  localShellCallItem,
]);
const knownTypes: ReadonlySet<string> = new Set(knownItem.options.map((option) => option.shape.type.value));

export type MessageItem = z.infer<typeof messageItem>;
type FunctionCallItem = z.infer<typeof functionCallItem>;
type CustomToolCallItem = z.infer<typeof customToolCallItem>;
type LocalShellCallItem = z.infer<typeof localShellCallItem>;
export type ToolCallItem = FunctionCallItem | CustomToolCallItem | LocalShellCallItem;
export type CallOutput = z.infer<typeof output>;
export type ToolOutputItem =
  | z.infer<typeof functionCallOutputItem>
  | z.infer<typeof customToolCallOutputItem>;

/** An item of a type that brig does not interpret. It is kept and sent back unchanged. */
interface OpaqueItem {
  type: "opaque";
  item: Readonly<Record<string, unknown>>;
}

/** One item of a conversation, in the Responses API's format, without statuses, which are never sent back. */
export type ResponseItem = z.infer<typeof knownItem> | OpaqueItem;

const anyItem = z
  .looseObject({ type: z.string() })
  .refine((item) => !isTooDeep(item), { error: "is nested too deeply", abort: true });

/** Reads an item that came from an endpoint or a session file. Throws a ZodError for an incomplete one. */
export function parseItem(value: unknown, { withId = true }: { withId?: boolean } = {}): ResponseItem {
  const item = anyItem.parse(value);
  const named = item.type === "local_shell_call" ? { ...item, call_id: item.call_id ?? item.id } : item;
  if (knownTypes.has(item.type)) {
    const known = knownItem.parse(named);
    return withId ? known : withoutId(known);
  }
  const { status: _status, ...kept } = item;
  return { type: "opaque", item: withId ? kept : withoutId(kept) };
}

/** The item as it is written to the session file. */
export function wireItem(item: ResponseItem): Readonly<Record<string, unknown>> {
  return item.type === "opaque" ? item.item : item;
}

/** The item as it is sent in a request. */
export function requestItem(
  item: ResponseItem,
  { withId }: { withId: boolean },
): Readonly<Record<string, unknown>> {
  const wire = wireItem(item);
  return withId ? wire : withoutId(wire);
}

function withoutId<Item extends object>(item: Item): Item {
  if (!("id" in item)) return item;
  const { id: _id, ...kept } = item;
  return kept as Item;
}

export function isToolCall(item: ResponseItem): item is ToolCallItem {
  return (
    item.type === "function_call" || item.type === "custom_tool_call" || item.type === "local_shell_call"
  );
}

export function isToolOutput(item: ResponseItem): item is ToolOutputItem {
  return item.type === "function_call_output" || item.type === "custom_tool_call_output";
}

/** Returns the name of the called tool and its input: JSON, or plain text for a freeform tool. */
export function calledTool(item: ToolCallItem): { name: string; input: string } {
  if (item.type === "function_call") return { name: item.name, input: item.arguments };
  if (item.type === "custom_tool_call") return { name: item.name, input: item.input };
  const { command, working_directory: workdir, timeout_ms } = item.action;
  return { name: "local_shell", input: JSON.stringify({ command, workdir, timeout_ms }) };
}

export function messageText(item: MessageItem): string {
  return item.content
    .map((part) => (part.type === "refusal" ? part.refusal : part.type === "input_image" ? "" : part.text))
    .join("");
}

/** The text of an output, without its images. */
export function outputText({ output }: Pick<ToolOutputItem, "output">): string {
  if (typeof output === "string") return output;
  return output.flatMap((part) => (part.type === "input_text" ? [part.text] : [])).join("\n");
}

export function textMessage(role: "user" | "developer", ...texts: string[]): MessageItem {
  return { type: "message", role, content: texts.map((text) => ({ type: "input_text", text })) };
}

/** The estimate for a picture of any size, because endpoints scale pictures. */
const IMAGE_TOKENS = 1800;

/** Encrypted reasoning is base64 of an envelope of about this size around the text. */
const REASONING_ENVELOPE_BYTES = 650;

/** Estimates the tokens of an item at four bytes each. */
export function itemTokens(item: ResponseItem): number {
  if (item.type === "reasoning" && typeof item.encrypted_content === "string") {
    const bytes = (item.encrypted_content.length * 3) / 4 - REASONING_ENVELOPE_BYTES;
    return tokensOfBytes(Math.max(0, bytes) + jsonBytes(item.summary));
  }
  const { shown, imageCount } = withoutPictures(item);
  return tokensOfBytes(jsonBytes(shown)) + imageCount * IMAGE_TOKENS;
}

function withoutPictures(item: ResponseItem): { shown: unknown; imageCount: number } {
  const parts = item.type === "message" ? item.content : "output" in item ? item.output : null;
  if (!Array.isArray(parts)) return { shown: wireItem(item), imageCount: 0 };
  const texts = parts.filter(({ type }) => type !== "input_image");
  const shown = { ...item, [item.type === "message" ? "content" : "output"]: texts };
  return { shown, imageCount: parts.length - texts.length };
}

function jsonBytes(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}
