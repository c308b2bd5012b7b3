import { type Command, forEachChild, parse, type SyntaxNode } from "unbash";
import { programName } from "./words.js";

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
