import type { SessionUpdate } from "@agentclientprotocol/sdk";
import type { ClientFeatures } from "../client-link.js";
import { longText, titleText } from "./shown-text.js";

export interface Notice {
  title: string;
  description: string;
}

const NOTICE_CHARS = 4000;

/** A message of brig itself. A client that does not support notices is sent a thought instead. */
export function noticeUpdate(
  { title, description }: Notice,
  { showsNotices }: Pick<ClientFeatures, "showsNotices">,
): SessionUpdate {
  const [head, text] = [titleText(title), longText(description, NOTICE_CHARS)];
  if (showsNotices) return { sessionUpdate: "notice", severity: "warning", title: head, description: text };
  return {
    sessionUpdate: "agent_thought_chunk",
    content: { type: "text", text: `brig: ${head}: ${text}\n\n` },
  };
}
