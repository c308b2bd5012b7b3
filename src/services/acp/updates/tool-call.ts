import { posix } from "node:path";
import type { ToolCall, ToolCallLocation, ToolKind } from "@agentclientprotocol/sdk";
import { z } from "zod";
import { isTooDeep } from "../../../lib/json/nesting.js";
import { parseJson } from "../../../lib/json/parse-json.js";
import { commandForPeople, pathsOf } from "../../../tools/index.js";
import { longText, titleText } from "./shown-text.js";

/** A longer input is shown as a shortened text instead of as JSON. */
const INPUT_CHARS = 16 * 1024;
const MAX_PATHS = 200;
const MAX_LINE = 4_294_967_295;

export interface CalledTool {
  callId: string;
  name: string;
  /** JSON, or any text for a freeform tool. */
  input: string;
}

const input = z.looseObject({
  cmd: z.string().optional().catch(undefined),
  command: z
    .union([z.string(), z.array(z.string())])
    .optional()
    .catch(undefined),
  file_path: z.string().optional().catch(undefined),
  dir_path: z.string().optional().catch(undefined),
  path: z.string().optional().catch(undefined),
  pattern: z.string().optional().catch(undefined),
  offset: z.number().optional().catch(undefined),
  input: z.string().optional().catch(undefined),
  session_id: z.number().optional().catch(undefined),
});
type Input = z.output<typeof input>;

const kinds: Readonly<Record<string, ToolKind>> = {
  shell: "execute",
  "container.exec": "execute",
  shell_command: "execute",
  local_shell: "execute",
  exec_command: "execute",
  write_stdin: "execute",
  js_repl: "execute",
  js_repl_reset: "execute",
  read_file: "read",
  view_image: "read",
  list_dir: "search",
  grep_files: "search",
  apply_patch: "edit",
  request_user_input: "think",
  web_search: "fetch",
};

/** Describes a call to an editor before it runs. */
export function toolCallOf(call: CalledTool, cwd: string): ToolCall {
  const { callId, name } = call;
  const args = argumentsOf(call);
  return {
    toolCallId: callId,
    title: titleOf(call, args),
    kind: kindOf(name),
    status: "pending",
    locations: locationsOf(call, { args, cwd }),
    rawInput: rawInput(call, args),
  };
}

function argumentsOf({ input: text }: CalledTool): Input | null {
  const value = text.length > 1024 * 1024 ? null : parseJson(text);
  const parsed = input.safeParse(isTooDeep(value) ? null : value);
  return parsed.success ? parsed.data : null;
}

function titleOf({ name, input: text }: CalledTool, args: Input | null): string {
  const command = commandOf(args);
  if (command !== null) return titleText(command);
  const place = args?.file_path ?? args?.dir_path ?? args?.path ?? "";
  switch (name) {
    case "read_file":
      return titleText(`Read ${place}`);
    case "view_image":
      return titleText(`Look at ${place}`);
    case "list_dir":
      return titleText(`List ${place}`);
    case "grep_files":
      return titleText(`Search for ${args?.pattern ?? ""}${place === "" ? "" : ` in ${place}`}`);
    case "apply_patch":
      return patchTitle(args?.input ?? text);
    case "write_stdin":
      return titleText(`Type into session ${args?.session_id ?? ""}`);
    case "request_user_input":
      return "Ask a question";
    default:
      return titleText(name.includes("__") ? name.replace("__", ": ") : name);
  }
}

function patchTitle(patch: string): string {
  const [first, ...others] = pathsOf(patch, "/").map((path) => posix.basename(path));
  if (first === undefined) return "Edit files";
  return titleText(others.length === 0 ? `Edit ${first}` : `Edit ${first} and ${others.length} more`);
}

function commandOf(args: Input | null): string | null {
  if (args?.cmd !== undefined) return args.cmd;
  const command = args?.command;
  return Array.isArray(command) ? commandForPeople(command) : (command ?? null);
}

function locationsOf(
  { name, input: text }: CalledTool,
  { args, cwd }: { args: Input | null; cwd: string },
): ToolCallLocation[] {
  if (name === "apply_patch")
    return pathsOf(args?.input ?? text, cwd)
      .slice(0, MAX_PATHS)
      .map((path) => ({ path }));
  const path = args?.file_path ?? args?.dir_path ?? args?.path;
  if (path === undefined || path.length > 4096 || path.includes("\0")) return [];
  const line = args?.offset;
  const isLine = name === "read_file" && line !== undefined && Number.isInteger(line);
  return [
    {
      path: posix.resolve(cwd, path),
      ...(isLine && line >= 0 && line <= MAX_LINE ? { line } : {}),
    },
  ];
}

/**
 * The arguments as JSON, or `{ input }` for the text of a freeform tool and for arguments that are too long
 * or invalid.
 */
function rawInput({ input: text }: CalledTool, args: Input | null): unknown {
  if (text.length > INPUT_CHARS) return { input: longText(text, INPUT_CHARS) };
  return args ?? { input: longText(text) };
}

/** A model may call tools that there are not, such as "toString". */
function kindOf(name: string): ToolKind {
  return (Object.hasOwn(kinds, name) && kinds[name]) || "other";
}
