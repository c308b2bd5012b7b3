import { imageType } from "../../lib/image-type.js";
import { isTooDeep } from "../../lib/json/nesting.js";
import type { OutputPart } from "../../sandbox/index.js";
import type { McpContentBlock, McpResult } from "./mcp-servers.js";

/** A larger picture does not fit into a request to a model. */
const MAX_PICTURE_BYTES = 8 * 1024 * 1024;
const MAX_PICTURES = 20;
const base64 = /^[A-Za-z0-9+/]*={0,2}$/;

/** A result as the model reads it, at full length. */
export interface McpResultOutput {
  /** The whole result as text, with `[image]` in place of each picture. */
  content: string;
  /** What the model gets in place of `content` if there are pictures. */
  parts?: readonly OutputPart[];
}

/**
 * Converts a server's result into what the model reads. If the result has structured content, the model reads
 * only that. Pictures of a kind that models can see become parts. All other binary content, such as audio, is
 * replaced by its size.
 */
export function mcpResultOutput({ content, structuredContent }: McpResult): McpResultOutput {
  if (structuredContent !== undefined && structuredContent !== null)
    return { content: json(structuredContent) };
  let pictures = 0;
  const parts = content.map((block): OutputPart => {
    const picture = pictures < MAX_PICTURES ? pictureUrl(block) : null;
    if (picture !== null) pictures += 1;
    if (picture !== null) return { type: "input_image", image_url: picture };
    return { type: "input_text", text: isText(block) ? block.text : json(withoutBytes(block)) };
  });
  if (pictures === 0) return { content: json(content.map(withoutBytes)) };
  return { content: parts.map(inWords).join("\n"), parts };
}

function isText(block: McpContentBlock): block is McpContentBlock & { text: string } {
  return block.type === "text" && typeof block.text === "string";
}

/**
 * A data URL for a picture that models can see, else null. The bytes decide, not the type that the server
 * names.
 */
function pictureUrl({ type, data }: McpContentBlock): string | null {
  if (type !== "image" || typeof data !== "string" || data.length > (MAX_PICTURE_BYTES / 3) * 4) return null;
  if (data.length % 4 !== 0 || !base64.test(data)) return null;
  const mimeType = imageType(Buffer.from(data.slice(0, 64), "base64"));
  return mimeType === null ? null : `data:${mimeType};base64,${data}`;
}

function withoutBytes(block: McpContentBlock): object {
  if (typeof block.data === "string") return { ...block, data: sizeInWords(block.data) };
  const { resource } = block;
  if (typeof resource !== "object" || resource === null || !("blob" in resource)) return block;
  return typeof resource.blob === "string"
    ? { ...block, resource: { ...resource, blob: sizeInWords(resource.blob) } }
    : block;
}

function sizeInWords(data: string): string {
  return `(${Math.floor((data.length * 3) / 4)} bytes left out)`;
}

function inWords(part: OutputPart): string {
  return part.type === "input_text" ? part.text : "[image]";
}

function json(value: unknown): string {
  return isTooDeep(value) ? "(nested too deeply to be shown)" : JSON.stringify(value);
}
