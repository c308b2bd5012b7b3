import type { CallToolResult, ContentBlock } from "@modelcontextprotocol/server";
import type { ToolOutput } from "../../../tools/index.js";

export function callResult({ content, parts, success }: ToolOutput): CallToolResult {
  const images = (parts ?? []).flatMap((part) =>
    part.type === "input_image" ? [imageContent(part.image_url)] : [],
  );
  return { content: [...images, { type: "text", text: content }], isError: !success };
}

export function failedResult(text: string): CallToolResult {
  return callResult({ content: text, success: false });
}

function imageContent(dataUrl: string): ContentBlock {
  const [, mimeType = "", data = ""] = /^data:([^;,]*);base64,(.*)$/s.exec(dataUrl) ?? [];
  return { type: "image", mimeType, data };
}
