import { commandsOf, systemProgram } from "./shell-script.js";
import type { CommandWords } from "./words.js";

/** Programs that only read, with any arguments. */
const readOnlyPrograms: ReadonlySet<string> = new Set(
  (
    "cat cd cut echo expr false grep head id ls nl numfmt paste pwd rev seq stat tac tail tr true uname wc " +
    "which whoami"
  ).split(" "),
);

/** Programs that only read with certain arguments. Each function checks the words after the name. */
const argumentChecks: Readonly<Record<string, (args: CommandWords) => boolean>> = {
  base64: (args) => noneOf(args, /^-(?!-).*o|^--o/),
  find: (args) => noneOf(args, /^-(?:exec|execdir|ok|okdir|delete|fls|fprint|fprint0|fprintf)$/),
  // Options of rg that start a program; `z` may be among other letters.
  rg: (args) => noneOf(args, /^--(?:pre|hostname-bin|search-zip)|^-[^-]*z/),
  sed: isPrintingSed,
  uniq: isReadingUniq,
};

/**
 * Whether a command is known to change nothing and to start no other program: a listed program, or a plain
 * script of such programs, as the system installs them. `git` is not listed, with any subcommand: `git
 * status` starts programs that a repository's configuration and attributes name (file system monitors,
 * filters, diff drivers, hooks). Any directory can be a repository, and no option or variable turns all of
 * these off, since a repository chooses their names.
 */
export function isKnownSafe(argv: readonly string[]): boolean {
  return commandsOf(argv)?.every(isSafeCommand) ?? false;
}

export function isSafeCommand([program, ...args]: CommandWords): boolean {
  const name = program === undefined ? null : systemProgram(program);
  if (name === null) return false;
  if (readOnlyPrograms.has(name)) return true;
  const isSafe = Object.hasOwn(argumentChecks, name) ? argumentChecks[name] : undefined;
  return isSafe?.(args) ?? false;
}

function noneOf(args: CommandWords, forbidden: RegExp): boolean {
  return !args.some((arg) => forbidden.test(arg));
}

/** `sed -n {N|M,N}p [FILE]`. sed takes a file name that looks like an option for one, in any position. */
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
