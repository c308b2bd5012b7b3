import { z } from "zod";
import { requireInput } from "../tool.js";
import type { AgentMessage } from "./agents.js";

const itemTypes = ["text", "image", "local_image", "audio", "local_audio", "skill", "mention"] as const;

export const messageItems = z
  .array(
    z.object({
      type: z.enum(itemTypes).describe("One of: text, image, local_image, skill, mention"),
      text: z.string().optional().describe("The text, if the type is text."),
      image_url: z.string().optional().describe("A data URL, if the type is image."),
      path: z
        .string()
        .optional()
        .describe("A path in the sandbox, if the type is local_image or skill; a target if it is mention."),
      name: z.string().optional().describe("A name, if the type is skill or mention."),
      audio_url: z.string().optional().describe("Not supported."),
    }),
  )
  .optional()
  .describe("A message in parts, in place of `message`.");

type MessageItem = NonNullable<z.output<typeof messageItems>>[number];

/** Throws `tool.invalid-input`, in Codex's words, unless there is exactly one message and it is not empty. */
export function messageOf({
  message,
  items,
}: {
  message?: string | null | undefined;
  items?: readonly MessageItem[] | null | undefined;
}): AgentMessage {
  const text = message ?? null;
  const parts = items ?? null;
  requireInput(text === null || parts === null, "Provide either message or items, but not both");
  if (text !== null) {
    requireInput(text.trim() !== "", "Empty message can't be sent to an agent");
    return { text, images: [] };
  }
  requireInput(parts !== null, "Provide one of: message or items");
  requireInput(parts !== null && parts.length > 0, "Items can't be empty");
  const read = (parts ?? []).map(readItem);
  const texts = read.flatMap((part) => (part.text === null ? [] : [part.text]));
  const images = read.flatMap((part) => (part.image === null ? [] : [part.image]));
  requireInput(images.length > 0 || texts.join("").trim() !== "", "Empty message can't be sent to an agent");
  return { text: texts.join("\n"), images };
}

/** Skills, mentions and pictures in the sandbox become texts, in the form in which Codex logs them. */
function readItem(item: MessageItem): { text: string | null; image: string | null } {
  switch (item.type) {
    case "text":
      return { text: required(item, "text"), image: null };
    case "image": {
      const image = required(item, "image_url");
      requireInput(
        image.startsWith("data:image/"),
        "an image must be a data URL; name one in the sandbox with local_image",
      );
      return { text: null, image };
    }
    case "local_image":
      return { text: `[local_image:${required(item, "path")}]`, image: null };
    case "skill":
    case "mention":
      return { text: `[${item.type}:$${required(item, "name")}](${required(item, "path")})`, image: null };
    case "audio":
    case "local_audio":
      requireInput(false, "audio cannot be sent to an agent");
      return { text: null, image: null };
    default:
      return item.type satisfies never;
  }
}

function required(item: MessageItem, field: "text" | "image_url" | "path" | "name"): string {
  const value = item[field];
  requireInput(value !== undefined, `failed to parse function arguments: missing field \`${field}\``);
  return value ?? "";
}

/** The message as one text for people, with `[image]` in place of each image. */
export function messageText({ text, images }: AgentMessage): string {
  return [...images.map(() => "[image]"), ...(text === "" ? [] : [text])].join("\n");
}
