import type { ContentBlock, EmbeddedResource } from "@agentclientprotocol/sdk";
import { imageType } from "../../../lib/image-type.js";
import type { ImageResizer } from "../../../tools/index.js";
import { invalidParams } from "../rpc-error.js";

const MAX_BLOCKS = 1000;
const MAX_IMAGES = 50;
const MAX_TEXT_CHARS = 16 * 1024 * 1024;

export interface PromptContent {
  text: string;
  /** Data URLs. */
  images: string[];
}

/**
 * Turns a client's prompt into the text and the images that the model gets. A linked file becomes its path:
 * the model can read it in the sandbox, and brig does not open it on the host. Error: -32602 for a prompt
 * that is empty, too long, or of an unsupported type.
 */
export async function promptContent(
  blocks: readonly ContentBlock[],
  { resizer, signal }: { resizer: ImageResizer; signal: AbortSignal },
): Promise<PromptContent> {
  if (blocks.length > MAX_BLOCKS) throw invalidParams(`a prompt may have at most ${MAX_BLOCKS} parts`);
  const pictures = blocks.flatMap(pictureIn);
  if (pictures.length > MAX_IMAGES) throw invalidParams(`a prompt may have at most ${MAX_IMAGES} images`);
  const text = blocks.map(textOf).join("");
  if (text.length > MAX_TEXT_CHARS)
    throw invalidParams(`the text of a prompt may have at most ${MAX_TEXT_CHARS} characters`);
  const images: string[] = [];
  for (const base64 of pictures) images.push(await fitted(base64, { resizer, signal }));
  if (text.trim() === "" && images.length === 0) throw invalidParams("the prompt is empty");
  return { text, images };
}

function textOf(block: ContentBlock): string {
  switch (block.type) {
    case "text":
      return block.text;
    case "resource_link":
      return mention(block.name, block.uri);
    case "resource":
      return resourceText(block);
    case "image":
      return "";
    case "audio":
      throw invalidParams("audio is not supported in a prompt");
    default:
      return block satisfies never;
  }
}

/**
 * A Markdown link. A file is named by its path, which is the same in the sandbox, and anything else by its
 * URI.
 */
function mention(name: string, uri: string): string {
  const path = filePath(uri);
  return path === null ? `[${name}](${uri})` : `[@${name}](${path})`;
}

function resourceText({ resource }: EmbeddedResource): string {
  const place = filePath(resource.uri) ?? resource.uri;
  if ("text" in resource) return `\n<context ref="${place}">\n${resource.text}\n</context>\n`;
  if (resource.mimeType?.startsWith("image/") === true) return "";
  throw invalidParams(`${place.slice(0, 200)} is neither text nor an image`);
}

function pictureIn(block: ContentBlock): string[] {
  if (block.type === "image") return [block.data];
  const isPicture =
    block.type === "resource" &&
    "blob" in block.resource &&
    block.resource.mimeType?.startsWith("image/") === true;
  return isPicture && "blob" in block.resource ? [block.resource.blob] : [];
}

function filePath(uri: string): string | null {
  if (!uri.startsWith("file:///")) return null;
  try {
    const { pathname, hash } = new URL(uri);
    const path = decodeURIComponent(pathname);
    return path.includes("\0") ? null : `${path}${hash}`;
  } catch {
    return null;
  }
}

async function fitted(
  base64: string,
  { resizer, signal }: { resizer: ImageResizer; signal: AbortSignal },
): Promise<string> {
  const bytes = Buffer.from(base64, "base64");
  if (imageType(bytes) === null)
    throw invalidParams("an image of the prompt is not a PNG, JPEG, GIF or WebP image");
  const image = await resizer.fit(bytes, { signal });
  if (image.kind === "unusable")
    throw invalidParams(`an image of the prompt cannot be used: ${image.reason}`);
  return `data:${image.type};base64,${image.bytes.toString("base64")}`;
}
