import { commandsOf, systemProgram } from "./shell-script.js";
import type { CommandWords } from "./words.js";

/** Programs that only look, whatever their arguments. */
const lookingPrograms: ReadonlySet<string> = new Set(
  (
    "cat cd cut echo expr false grep head id ls nl numfmt paste pwd rev seq stat tac tail tr true uname wc " +
    "which whoami"
  ).split(" "),
);

/** Programs that only look unless told otherwise: each judges the words after its name. */
const judges: Readonly<Record<string, (args: CommandWords) => boolean>> = {
  base64: (args) => noneOf(args, /^-(?!-).*o|^--o/),
  find: (args) => noneOf(args, /^-(?:exec|execdir|ok|okdir|delete|fls|fprint|fprint0|fprintf)$/),
  // The options of rg that start a program; `z` may stand among other letters.
  rg: (args) => noneOf(args, /^--(?:pre|hostname-bin|search-zip)|^-[^-]*z/),
  sed: isPrintingSed,
  uniq: isReadingUniq,
};

/**
 * Whether an argument list is known to change nothing and to start no other program: a program of the list, or a plain script of such
 * programs. It speaks of the programs that the system has under these names. `git` is none of them, whatever its subcommand: `git
 * status` starts what a repository's configuration and attributes name (a file system monitor, filters, diff drivers, hooks), any folder
 * can be a repository, and neither an option nor the environment turns all of these off, since a repository chooses their names.
 */
export function isKnownSafe(argv: readonly string[]): boolean {
  return commandsOf(argv)?.every(isSafeCommand) ?? false;
}

export function isSafeCommand([program, ...args]: CommandWords): boolean {
  const name = program === undefined ? null : systemProgram(program);
  if (name === null) return false;
  if (lookingPrograms.has(name)) return true;
  const judge = Object.hasOwn(judges, name) ? judges[name] : undefined;
  return judge?.(args) ?? false;
}

function noneOf(args: CommandWords, forbidden: RegExp): boolean {
  return !args.some((arg) => forbidden.test(arg));
}

/** `sed -n {N|M,N}p [FILE]`. A file that looks like an option is one to sed, wherever it stands. */
function isPrintingSed(args: CommandWords): boolean {
  const [flag, lines = "", file = "", ...rest] = args;
  return flag === "-n" && /^\d+(?:,\d+)?p$/.test(lines) && !isOption(file) && rest.length === 0;
}

/** `uniq` writes to its second operand. */
function isReadingUniq(args: CommandWords): boolean {
  return args.filter((arg) => !isOption(arg)).length <= 1 && !args.includes("--");
}

function isOption(arg: string): boolean {
  return /^-./.test(arg);
}
