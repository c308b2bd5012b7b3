import type { AvailableCommand } from "@agentclientprotocol/sdk";
import type { SessionCommand } from "../session-opener.js";

/** The command that a prompt consists of, such as `/status`; null for any other prompt. */
export function commandIn(prompt: string, commands: readonly SessionCommand[]): SessionCommand | null {
  const name = /^\/([a-z-]+)$/.exec(prompt.trim())?.[1];
  return commands.find((command) => command.name === name) ?? null;
}

export function availableCommands(commands: readonly SessionCommand[]): AvailableCommand[] {
  return commands.map(({ name, description }) => ({ name, description }));
}
