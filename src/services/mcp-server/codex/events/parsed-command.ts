import { commandForPeople } from "../../../../tools/index.js";

/**
 * Codex's field `parsed_cmd`. Codex recognises some commands, such as reading a file; brig calls every
 * command unknown.
 */
export function parsedCommand(argv: readonly string[]): { type: "unknown"; cmd: string } {
  return { type: "unknown", cmd: commandForPeople(argv) };
}
