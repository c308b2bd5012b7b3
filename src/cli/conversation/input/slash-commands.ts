import type { Conversation, PreparedSession } from "../../../agent/index.js";
import { suggest } from "../../../lib/suggest.js";
import type { SandboxMode } from "../../../sandbox/index.js";

export interface SlashCommand {
  name: SlashCommandName;
  /** In brackets if it can be left out. */
  argument?: string;
  /** What can be chosen as the argument, if that is a known set. Default: nothing is offered. */
  completions?: (
    session: CompletionSession,
  ) => readonly ArgumentChoice[] | Promise<readonly ArgumentChoice[]>;
  summary: string;
  /** The command waits until the running turn has ended, because a tool may be in the middle of a change. */
  waitsForTurn: boolean;
}

/** The session for which something is completed, as it is then. */
export interface CompletionSession {
  readonly conversation: Conversation;
  readonly setup: PreparedSession;
}

/** Its texts need not be safe for a terminal. */
export interface ArgumentChoice {
  value: string;
  summary?: string;
  /** Whether something has to be typed after it. Default: false. */
  needsMore?: boolean;
}

type SlashCommandName =
  | "status"
  | "diff"
  | "apply"
  | "undo"
  | "compact"
  | "model"
  | "new"
  | "clear"
  | "resume"
  | "review"
  | "mcp"
  | "mode"
  | "network"
  | "tools"
  | "help"
  | "quit";

/** What tool calls can do in each mode. */
export const modePermissions: Readonly<Record<SandboxMode, string>> = {
  "read-only": "read the workspace, and write only temporary files",
  "workspace-write": "change files in the workspace",
  "danger-full-access":
    "change everything in the workspace, .git too, run as root in the container, and use the network",
};

export const slashCommands: readonly SlashCommand[] = [
  { name: "status", summary: "show this session's settings and token usage", waitsForTurn: false },
  {
    name: "diff",
    summary:
      "show what has changed since the last commit; with --workspace overlay, what your files do not have",
    waitsForTurn: false,
  },
  {
    name: "apply",
    argument: "[PATHS]",
    summary: "with --workspace overlay, bring what has changed to your files",
    waitsForTurn: true,
  },
  {
    name: "undo",
    summary: "with --workspace overlay, take back what the last call changed; again, the one before it",
    waitsForTurn: true,
  },
  {
    name: "model",
    argument: "[NAME [EFFORT]]",
    completions: modelNames,
    summary: "choose the model, and how much it reasons, for the rest of the session",
    waitsForTurn: true,
  },
  {
    name: "review",
    argument: "[BRANCH|COMMIT|WORDS]",
    summary: "have the model review a change, and give it the findings",
    waitsForTurn: true,
  },
  {
    name: "new",
    summary: "end this session, and begin an empty one in the same settings and a fresh sandbox",
    waitsForTurn: true,
  },
  { name: "clear", summary: "the same as /new, on an empty screen", waitsForTurn: true },
  { name: "resume", summary: "end this session, and go on with an earlier one", waitsForTurn: true },
  { name: "compact", summary: "summarise the conversation so far, to make room", waitsForTurn: true },
  {
    name: "mode",
    argument: "MODE",
    completions: () => Object.entries(modePermissions).map(([value, summary]) => ({ value, summary })),
    summary: "continue in a new container with another mode",
    waitsForTurn: true,
  },
  {
    name: "network",
    argument: "[allow HOST|deny HOST|none]",
    completions: () => [
      { value: "allow", summary: "let programs reach a host", needsMore: true },
      { value: "deny", summary: "take a host from the allow-list", needsMore: true },
      { value: "none", summary: "take all hosts from the allow-list" },
    ],
    summary: "show the allow-list and what was tried last, or change the list",
    waitsForTurn: true,
  },
  { name: "mcp", summary: "list the MCP servers, what became of them, and their tools", waitsForTurn: false },
  { name: "tools", summary: "list the tools, and why each is on or off", waitsForTurn: false },
  { name: "help", summary: "list the commands and keys", waitsForTurn: false },
  { name: "quit", summary: "end the session", waitsForTurn: false },
];

/** The models that the endpoint says it has. */
async function modelNames({
  conversation: { model },
  setup: { otherModels },
}: CompletionSession): Promise<readonly ArgumentChoice[]> {
  const { signal } = new AbortController();
  const names = await otherModels?.list({ provider: model.provider }, signal);
  return (names ?? []).map((value) => ({ value }));
}

export const keyHelp: readonly (readonly [string, string])[] = [
  ["Enter", "send; while a turn is running, send after it"],
  ["alt-Enter, ctrl-J, \\ Enter", "start a new line"],
  ["/", "list the commands; Tab completes, Enter runs the chosen one"],
  ["@", "find a file of the workspace by a part of its name, and insert its path"],
  ["! COMMAND", "run a command in the sandbox, as you; the model reads it with your next message"],
  ["paste", "fold what is long, and send it in full; turn the path of a picture into the picture"],
  ["up, down", "recall earlier messages, or choose in a list"],
  ["ctrl-R", "search earlier messages"],
  ["ctrl-O", "show output that was left out; while a command is running, more of its output"],
  ["esc", "close a list or a question, or interrupt the turn"],
  ["esc esc", "clear the draft; if it is empty, bring back the last message"],
  ["ctrl-C", "interrupt the turn; twice at an empty prompt, end the session"],
  ["ctrl-D", "end the session, at an empty prompt"],
  ["ctrl-Z", "suspend brig; fg continues it"],
];

export type ParsedInput =
  | { kind: "prompt"; text: string }
  /** A command for the shell of the sandbox; empty if there is nothing behind the exclamation mark. */
  | { kind: "shell"; script: string }
  | { kind: "command"; command: SlashCommand; argument: string }
  | { kind: "unknown-command"; name: string; meant: string | null };

/** A single word after a slash is a command; a path such as `/etc/hosts` is part of a prompt. */
export function parseInput(text: string): ParsedInput {
  if (/^\s*!/.test(text)) return { kind: "shell", script: text.trim().slice(1).trim() };
  const match = /^\/(?<name>[A-Za-z-]*)(?:[ \t]+(?<argument>[^\n]*))?$/.exec(text.trim());
  if (match === null) return { kind: "prompt", text };
  const name = match.groups?.name ?? "";
  const command = slashCommands.find((candidate) => candidate.name === name.toLowerCase());
  if (command !== undefined)
    return { kind: "command", command, argument: match.groups?.argument?.trim() ?? "" };
  return {
    kind: "unknown-command",
    name,
    meant: suggest(
      name,
      slashCommands.map((each) => each.name),
    ),
  };
}
