import type { ToolCallContent, ToolCallLocation } from "@agentclientprotocol/sdk";
import type { FileChange, FileDiff } from "../../../tools/index.js";
import { exactText, fenced, titleText } from "./shown-text.js";

/** Limit for the texts of one file, before and after together. */
const FILE_CHARS = 512 * 1024;
/** Limit for the texts of all files together. */
const ALL_CHARS = 2 * 1024 * 1024;
const MAX_FILES = 200;

/**
 * Each file's text before and after, from which an editor draws a diff; a sentence instead for texts that are
 * too long.
 */
export function diffContent(diffs: readonly FileDiff[]): ToolCallContent[] {
  let charsLeft = ALL_CHARS;
  const content = diffs.slice(0, MAX_FILES).map((diff): ToolCallContent => {
    const chars = (diff.before?.length ?? 0) + (diff.after?.length ?? 0);
    if (chars > Math.min(FILE_CHARS, charsLeft))
      return textContent(`${titleText(diff.path)} has changed; it is too long to be shown here`);
    charsLeft -= chars;
    return { type: "diff", path: diff.path, oldText: diff.before, newText: diff.after ?? "" };
  });
  const rest = diffs.length - MAX_FILES;
  return rest > 0 ? [...content, textContent(`and ${rest} more files`)] : content;
}

/** A patch that has not been applied yet, as the model wrote it. */
export function patchContent(patch: string): ToolCallContent[] {
  return [textContent(fenced(exactText(patch), "diff"))];
}

export function changeLocations(changes: readonly FileChange[]): ToolCallLocation[] {
  return [...new Set(changes.map(({ path }) => path))].slice(0, MAX_FILES).map((path) => ({ path }));
}

export function textContent(text: string): ToolCallContent {
  return { type: "content", content: { type: "text", text } };
}
