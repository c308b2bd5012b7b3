import { splitPlainScript } from "./plain-script.js";
import type { CommandWords } from "./words.js";

const SYSTEM_DIRECTORIES: ReadonlySet<string> = new Set(["/bin", "/usr/bin", "/usr/local/bin"]);

/**
 * The name of a program that the system installs: a bare name, or a path in a system directory. Null for
 * other paths, where a program may have any name.
 */
export function systemProgram(path: string): string | null {
  const slash = path.lastIndexOf("/");
  if (slash === -1) return path;
  return SYSTEM_DIRECTORIES.has(path.slice(0, slash)) ? path.slice(slash + 1) : null;
}

function shellScriptOf(argv: readonly string[]): string | null {
  const [program = "", flag, script, ...rest] = argv;
  const shell = systemProgram(program);
  if (shell !== "bash" && shell !== "zsh" && shell !== "sh") return null;
  if ((flag !== "-lc" && flag !== "-c") || script === undefined || rest.length > 0) return null;
  return script;
}

/** The commands of an argument list: itself, or those of a shell's plain script. Null for other scripts. */
export function commandsOf(argv: readonly string[]): CommandWords[] | null {
  const found = shellScriptOf(argv);
  return found === null ? [argv] : splitPlainScript(found);
}
