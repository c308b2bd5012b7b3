import { type Command, forEachChild, parse, type SyntaxNode } from "unbash";

/** Programs that start another, which is somewhere among their arguments. */
export const launchers: ReadonlySet<string> = new Set(
  (
    "busybox chroot chrt command doas env exec fakeroot find flock ionice nice nohup nsenter parallel pkexec prlimit runuser " +
    "setarch setpriv setsid start-stop-daemon stdbuf strace sudo taskset time timeout toybox unshare watch xargs"
  ).split(" "),
);

const shells: ReadonlySet<string> = new Set(["ash", "bash", "dash", "ksh", "sh", "zsh"]);

/** Scripts within scripts are looked into so deep. */
const MAX_DEPTH = 8;

/** Of what a script nests, some 25 substitutions: the parser reads all that is in one again for each level. */
const MAX_LEVELS = 128;

/** So many words of a launcher's are tried as the beginning of what it starts. */
const MAX_STARTS = 256;

/** Of one script no more than its beginning is looked at, and no more of all scripts within it together. */
const MAX_SCRIPT_CHARS = 64 * 1024;
const MAX_CHARS_IN_ALL = 256 * 1024;

/**
 * Whether an argument list looks as if it could destroy something for good: `rm` with a force option, also behind `sudo` and the
 * like, in `eval` and `trap`, and anywhere in the script that a shell is given. It is a net for what is written in the open, not a wall: whoever wants to
 * hide a command can, which is what the sandbox is for. What is nested so wildly that it cannot be looked through counts as dangerous.
 */
export function looksDangerous(argv: readonly string[]): boolean {
  return new Inspection().looksDangerous(argv, 0);
}

/** One look at a command. What it costs is bounded, whatever a model writes. */
class Inspection {
  readonly #seen = new Set<string>();
  #charsLeft = MAX_CHARS_IN_ALL;

  looksDangerous(argv: readonly string[], depth: number): boolean {
    const [path = "", ...args] = argv;
    if (!launchers.has(baseName(path))) return this.#isDestructive(argv, depth);
    return args.slice(0, MAX_STARTS).some((_, at) => this.#isDestructive(args.slice(at), depth));
  }

  #isDestructive([path = "", ...args]: readonly string[], depth: number): boolean {
    const name = baseName(path);
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
      // The parser calls itself for each level.
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

function baseName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

/** `-f`, also among other letters, or `--force` from its first letter on. After `--` there are only names. */
function isForced(args: readonly string[]): boolean {
  const end = args.indexOf("--");
  const options = end === -1 ? args : args.slice(0, end);
  return options.some((option) => /^-[a-zA-Z]*f/.test(option) || /^--f(?:o(?:r(?:ce?)?)?)?$/.test(option));
}

/** The script that a program is given to run, now or, for `trap`, when it ends or a signal comes. */
function scriptOf(name: string, args: readonly string[]): string | null {
  if (name === "eval") return args.join(" ");
  if (name === "trap") return args.find((arg) => !arg.startsWith("-")) ?? null;
  return shells.has(name) || name === "su" ? scriptArgument(args) : null;
}

/** What follows `-c`, which may stand among other letters. */
function scriptArgument(args: readonly string[]): string | null {
  const flag = args.findIndex((arg) => /^-[a-zA-Z]*c[a-zA-Z]*$/.test(arg));
  return flag === -1 ? null : (args[flag + 1] ?? null);
}

/** The words of a command; what the shell would fill in stands in them as it is written. */
function valuesOf({ name, args }: Command): string[] {
  if (name === undefined) return [];
  return [name.value, ...args.map((arg) => (arg.type === "Word" ? arg.value : arg.text))];
}
