import { neutraliseLine } from "../../../../lib/terminal/terminal.js";
import type { CodexMessage } from "./codex-event.js";

const MAX_CHARS = 200;

/** The text that a client can show as progress; null for an event that is not shown. */
export function progressText(message: CodexMessage): string | null {
  switch (message.type) {
    case "task_started":
      return "the turn has begun";
    case "agent_message":
      return shown(message.message);
    case "exec_command_begin":
      return `runs ${shown(commandOf(message))}`;
    case "patch_apply_begin":
      return "applies a patch";
    case "exec_approval_request":
    case "apply_patch_approval_request":
      return "waits for approval";
    default:
      return null;
  }
}

function commandOf({ parsed_cmd: commands }: CodexMessage): unknown {
  return Array.isArray(commands) ? commands[0]?.cmd : null;
}

function shown(text: unknown): string {
  const start = String(text).slice(0, MAX_CHARS);
  return neutraliseLine(start) + (String(text).length > MAX_CHARS ? "…" : "");
}
