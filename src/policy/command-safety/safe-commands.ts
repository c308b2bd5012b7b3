import { isSafeGit } from "./safe-git.js";
import { commandsOf, systemProgram } from "./shell-script.js";
import type { CommandWord, CommandWords } from "./words.js";

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
  git: isSafeGit,
};

/**
 * Whether an argument list is known to change nothing: a program of the list, or a plain script of such programs. It speaks of the
 * programs that the system has under these names, and of a repository whose configuration the user trusts: git runs what that names.
 */
export function isKnownSafe(argv: readonly string[]): boolean {
  return commandsOf(argv)?.every(isSafeCommand) ?? false;
}

export function isSafeCommand([program, ...args]: CommandWords): boolean {
  if (program === undefined || program.hasPattern) return false;
  const name = systemProgram(program.value);
  if (name === null) return false;
  if (lookingPrograms.has(name)) return true;
  const judge = Object.hasOwn(judges, name) ? judges[name] : undefined;
  return judge?.(args) ?? false;
}

/** No word is such an option, nor can become one. */
function noneOf(args: CommandWords, forbidden: RegExp): boolean {
  return args.every((arg) => !arg.mayBecomeOption && !forbidden.test(arg.value));
}

/** `sed -n {N|M,N}p [FILE]`. A file that looks like an option is one to sed, wherever it stands. */
function isPrintingSed(args: CommandWords): boolean {
  const [flag, lines, file, ...rest] = args;
  return (
    flag?.value === "-n" &&
    lines !== undefined &&
    !lines.hasPattern &&
    /^\d+(?:,\d+)?p$/.test(lines.value) &&
    (file === undefined || isOperand(file)) &&
    rest.length === 0
  );
}

/** `uniq` writes to its second operand. */
function isReadingUniq(args: CommandWords): boolean {
  const operands = args.filter((arg) => !/^-./.test(arg.value));
  return operands.length <= 1 && args.every((arg) => !arg.hasPattern && arg.value !== "--");
}

function isOperand({ value, mayBecomeOption }: CommandWord): boolean {
  return !mayBecomeOption && !/^-./.test(value);
}
