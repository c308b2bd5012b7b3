import { shellQuote } from "../../../../tools/index.js";

const SHELL = /(?:^|\/)(?:ba|z|da)?sh$/;
const SCRIPT_FLAG = /^-l?c$/;

/**
 * Codex's field `parsed_cmd`. Codex recognises some commands, such as reading a file; brig calls every
 * command unknown.
 */
export function parsedCommand(argv: readonly string[]): { type: "unknown"; cmd: string } {
  const [shell = "", flag = "", script] = argv;
  const isScript = argv.length === 3 && script !== undefined && SHELL.test(shell) && SCRIPT_FLAG.test(flag);
  return { type: "unknown", cmd: isScript ? script : shellQuote(argv) };
}
