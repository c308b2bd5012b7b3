import { z } from "zod";
import { isTooDeep } from "../../lib/json/nesting.js";

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

/** The items that brig interprets. */
export const knownItem = z.discriminatedUnion("type", [
  messageItem,
  reasoningItem,
  functionCallItem,
  functionCallOutputItem,
  customToolCallItem,
  customToolCallOutputItem,
  localShellCallItem,
]);

/** Any item, whether brig interprets it or not. */
export const anyItem = z
  .looseObject({ type: z.string() })
  .refine((item) => !isTooDeep(item), { error: "is nested too deeply", abort: true });
