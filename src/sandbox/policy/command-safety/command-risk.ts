import { type Command, forEachChild, parse, type SyntaxNode } from "unbash";
import { type CommandWords, commandsOf, programName, systemProgram } from "./shell-script.js";

/** The harm that a command could do, judging by its text. */
export type CommandRisk =
  /** It only reads. */
  | "safe"
  /** It could destroy something for good. */
  | "dangerous"
  | "other";

/** In a script the most dangerous command counts. */
export function riskOf(argv: readonly string[]): CommandRisk {
  if (looksDangerous(argv)) return "dangerous";
  return isKnownSafe(argv) ? "safe" : "other";
}

export const launchers: ReadonlySet<string> = new Set(
  (
    "busybox chroot chrt command doas env exec fakeroot find flock ionice nice nohup nsenter parallel pkexec prlimit runuser " +
    "setarch setpriv setsid start-stop-daemon stdbuf strace sudo taskset time timeout toybox unshare watch xargs"
  ).split(" "),
);

const shells: ReadonlySet<string> = new Set(["ash", "bash", "dash", "ksh", "sh", "zsh"]);

/** The depth to which scripts within scripts are searched. */
const MAX_DEPTH = 8;

/** Some 25 nested substitutions. The parser reads the rest of the script again for each level. */
const MAX_LEVELS = 128;

/** The number of a launcher's words that are tried as the start of its command. */
const MAX_STARTS = 256;

/** Limits for one script, and for all scripts together. */
const MAX_SCRIPT_CHARS = 64 * 1024;
const MAX_CHARS_IN_ALL = 256 * 1024;

/**
 * Whether a command looks as if it could destroy something for good: `rm` with a force option, also behind
 * `sudo` and the like, in `eval` and `trap`, and in scripts for a shell. This catches what is written openly
 * and is no protection: a command can be hidden, which is why there is a sandbox. What is nested too deeply
 * to be searched counts as dangerous.
 */
export function looksDangerous(argv: readonly string[]): boolean {
  return new Inspection().looksDangerous(argv, 0);
}

/** A search with limits, since a model can write anything. */
class Inspection {
  readonly #seen = new Set<string>();
  #charsLeft = MAX_CHARS_IN_ALL;

  looksDangerous(argv: readonly string[], depth: number): boolean {
    const [path = "", ...args] = argv;
    if (!launchers.has(programName(path))) return this.#isDestructive(argv, depth);
    return args.slice(0, MAX_STARTS).some((_, at) => this.#isDestructive(args.slice(at), depth));
  }

  #isDestructive([path = "", ...args]: readonly string[], depth: number): boolean {
    const name = programName(path);
    if (name === "rm") return isForced(args);
    const script = scriptOf(name, args);
    if (script === null) return false;
    return depth >= MAX_DEPTH || this.#scriptLooksDangerous(script, depth + 1);
  }

  #scriptLooksDangerous(whole: string, depth: number): boolean {
    const script = whole.slice(0, MAX_SCRIPT_CHARS);
    const key = `${depth} ${script}`;
    if (this.#seen.has(key)) return false;
    this.#seen.add(key);
    this.#charsLeft -= script.length;
    if (this.#charsLeft < 0) return true;
    try {
      return this.#hasDangerousCommand(parse(script), depth);
    } catch (error) {
      // The parser is recursive.
      if (error instanceof RangeError) return true;
      throw error;
    }
  }

  #hasDangerousCommand(script: SyntaxNode, depth: number): boolean {
    let isDangerous = false;
    const visit = (node: SyntaxNode, level: number): void => {
      isDangerous ||= level > MAX_LEVELS;
      isDangerous ||= node.type === "Command" && this.looksDangerous(valuesOf(node), depth);
      if (!isDangerous) forEachChild(node, (child) => visit(child, level + 1));
    };
    visit(script, 0);
    return isDangerous;
  }
}

/** `-f`, alone or among other letters, or `--force`, also abbreviated. After `--` there are only names. */
function isForced(args: readonly string[]): boolean {
  const end = args.indexOf("--");
  const options = end === -1 ? args : args.slice(0, end);
  return options.some((option) => /^-[a-zA-Z]*f/.test(option) || /^--f(?:o(?:r(?:ce?)?)?)?$/.test(option));
}

/** The script that a program runs; `trap` runs it at the end or at a signal. */
function scriptOf(name: string, args: readonly string[]): string | null {
  if (name === "eval") return args.join(" ");
  if (name === "trap") return args.find((arg) => !arg.startsWith("-")) ?? null;
  return shells.has(name) || name === "su" ? scriptArgument(args) : null;
}

/** The argument after `-c`, a letter that may be combined with others. */
function scriptArgument(args: readonly string[]): string | null {
  const flag = args.findIndex((arg) => /^-[a-zA-Z]*c[a-zA-Z]*$/.test(arg));
  return flag === -1 ? null : (args[flag + 1] ?? null);
}

/** The words of a command. Expansions are left as they are written. */
function valuesOf({ name, args }: Command): string[] {
  if (name === undefined) return [];
  return [name.value, ...args.map((arg) => (arg.type === "Word" ? arg.value : arg.text))];
}

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
