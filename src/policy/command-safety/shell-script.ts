import { splitPlainScript } from "./plain-script.js";
import type { CommandWords } from "./words.js";

const SYSTEM_DIRECTORIES: ReadonlySet<string> = new Set(["/bin", "/usr/bin", "/usr/local/bin"]);

/**
 * The name of a program that comes with the system: a name alone, which is looked for in PATH, or one in a system directory. Null
 * for a path to anywhere else, since a program there may have any name.
 */
export function systemProgram(path: string): string | null {
  const slash = path.lastIndexOf("/");
  if (slash === -1) return path;
  return SYSTEM_DIRECTORIES.has(path.slice(0, slash)) ? path.slice(slash + 1) : null;
}

/** The script of `bash|zsh|sh -lc|-c SCRIPT`, else null. */
function shellScriptOf(argv: readonly string[]): string | null {
  const [program = "", flag, script, ...rest] = argv;
  const shell = systemProgram(program);
  if (shell !== "bash" && shell !== "zsh" && shell !== "sh") return null;
  if ((flag !== "-lc" && flag !== "-c") || script === undefined || rest.length > 0) return null;
  return script;
}

/**
 * The commands that an argument list runs: itself, or those of the plain script that it gives to a shell. Null where a script does
 * more than can be told.
 */
export function commandsOf(argv: readonly string[]): CommandWords[] | null {
  const found = shellScriptOf(argv);
  return found === null ? [argv] : splitPlainScript(found);
}
