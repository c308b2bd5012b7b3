import { suggest } from "../../../lib/suggest.js";

export interface SlashCommand {
  name: SlashCommandName;
  argument?: string;
  summary: string;
  /** Changes the session, so that it waits for the end of a turn. */
  waitsForTurn: boolean;
}

type SlashCommandName = "status" | "diff" | "compact" | "mode" | "tools" | "help" | "quit";

export const slashCommands: readonly SlashCommand[] = [
  { name: "status", summary: "what this session is and what it has used", waitsForTurn: false },
  { name: "diff", summary: "what has changed in the workspace since the last commit", waitsForTurn: false },
  { name: "compact", summary: "sum up the conversation so far, to make room", waitsForTurn: true },
  {
    name: "mode",
    argument: "MODE",
    summary: "go on in a new container with another mode",
    waitsForTurn: true,
  },
  { name: "tools", summary: "the tools, and why each is on or off", waitsForTurn: false },
  { name: "help", summary: "this list, and the keys", waitsForTurn: false },
  { name: "quit", summary: "end the session", waitsForTurn: false },
];

export const keyHelp: readonly (readonly [string, string])[] = [
  ["Enter", "send; while a turn runs, for the next one"],
  ["alt-Enter, ctrl-J, \\ Enter", "a new line"],
  ["up, down", "earlier messages"],
  ["ctrl-R", "search them"],
  ["ctrl-O", "show what was folded; while a command runs, more of its output"],
  ["ctrl-C", "interrupt the turn; twice at an empty prompt: end"],
  ["ctrl-D", "end, at an empty prompt"],
  ["ctrl-Z", "back to the shell, whose fg goes on here"],
];

export type ParsedInput =
  | { kind: "prompt"; text: string }
  | { kind: "command"; command: SlashCommand; argument: string }
  | { kind: "unknown-command"; name: string; meant: string | null };

/** A word after a slash is a command, but a path is a part of a prompt. */
export function parseInput(text: string): ParsedInput {
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
