import type { ContentBlock } from "@agentclientprotocol/sdk";
import { expect, it } from "vitest";
import { promptContent } from "../../../../../src/services/acp/session/prompt-content.js";
import { ImageResizer } from "../../../../../src/tools/picture/image-resizer.js";

const read = (...blocks: ContentBlock[]) =>
  promptContent(blocks, { resizer: new ImageResizer(), signal: new AbortController().signal });

const text = (text: string): ContentBlock => ({ type: "text", text });

it.each<[string, ContentBlock, string]>([
  ["a file", { type: "resource_link", name: "a", uri: "file:///w/a%20b#L3" }, "[@a](/w/a b#L3)"],
  ["a page", { type: "resource_link", name: "a", uri: "https://example.org/" }, "[a](https://example.org/)"],
  ["a path with a NUL", { type: "resource_link", name: "a", uri: "file:///w/%00" }, "[a](file:///w/%00)"],
  ["a broken escape", { type: "resource_link", name: "a", uri: "file:///%zz" }, "[a](file:///%zz)"],
  [
    "an attached text",
    { type: "resource", resource: { uri: "zed:///x", text: "t" } },
    '\n<context ref="zed:///x">\nt\n</context>\n',
  ],
])("%s becomes text, and no file is opened", async (_, block, expected) => {
  expect(await read(text("see "), block)).toEqual({ text: `see ${expected}`, images: [] });
});

it.each<[string, ContentBlock[], string]>([
  ["nothing", [], "the prompt is empty"],
  ["blanks", [text(" \n")], "the prompt is empty"],
  ["audio", [{ type: "audio", data: "", mimeType: "audio/wav" }], "audio is not supported in a prompt"],
  [
    "another blob",
    [{ type: "resource", resource: { uri: "file:///a.zip", blob: "" } }],
    "/a.zip is neither text nor an image",
  ],
  [
    "no picture",
    [{ type: "image", data: "AAAA", mimeType: "image/png" }],
    "is not a PNG, JPEG, GIF or WebP image",
  ],
  ["too many parts", Array.from({ length: 1001 }, () => text("a")), "at most 1000 parts"],
  [
    "too many pictures",
    Array.from({ length: 51 }, () => ({ type: "image" as const, data: "", mimeType: "" })),
    "at most 50 images",
  ],
  ["too much text", [text("a".repeat(17 * 1024 * 1024))], "at most 16777216 characters"],
])("%s is refused", async (_, blocks, message) => {
  await expect(read(...blocks)).rejects.toMatchObject({
    code: -32_602,
    message: expect.stringContaining(message),
  });
});
