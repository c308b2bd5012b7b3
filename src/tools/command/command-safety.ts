import {
  type Command,
  type CommandNode,
  forEachChild,
  type PipelineNode,
  parse,
  type Statement,
  type SyntaxNode,
} from "unbash";
import type { CommandRisk } from "../../sandbox/index.js";
import type { SandboxPlace } from "../review/action.js";

type Script = ReturnType<typeof parse>;

/** The words of one command: its program and the arguments. */
export type CommandWords = readonly string[];

/** What a command could do, judging by its text. Each script in it is parsed once. */
export class CommandSafety {
  /** Of several commands in a script, the most dangerous one counts. */
  readonly risk: CommandRisk;
  /** The commands of the argument list: itself, or those of a shell's plain script. Null for other scripts. */
  readonly commands: readonly CommandWords[] | null;

  constructor(argv: readonly string[]) {
    const scripts = new ParsedScripts();
    const script = plainShellScript(argv);
    this.commands = script === null ? [argv] : splitPlainScript(script, scripts);
    const isKnownSafe = this.commands?.every(isSafeCommand) ?? false;
    const isDangerous = new Inspection(scripts).looksDangerous(argv, 0);
    this.risk = isDangerous ? "dangerous" : isKnownSafe ? "safe" : "other";
  }

  /** The only command, without the shell around it, so that both spellings are equal. Null if it is not the only one. */
  get single(): CommandWords | null {
    const [words = null] = this.commands ?? [];
    return this.commands?.length === 1 ? words : null;
  }

  /**
   * Whether every command begins with one of the prefixes or, in the sandbox, is known to be safe. False for
   * anything that looks dangerous.
   */
  isCovered(prefixes: readonly CommandPrefix[], place: SandboxPlace): boolean {
    if (this.risk === "dangerous") return false;
    const isFree = (words: CommandWords) => place === "sandbox" && isSafeCommand(words);
    return (
      this.commands?.every(
        (words) => isFree(words) || prefixes.some((prefix) => beginsWith(words, prefix)),
      ) ?? false
    );
  }

  /**
   * The prefix to offer for the command: the model's if it may be approved and covers the command, else one for a
   * single command. Null if there is none.
   */
  prefixToOffer({
    proposed,
    place,
  }: {
    proposed: CommandPrefix | null;
    place: SandboxPlace;
  }): CommandPrefix | null {
    const prefix = proposed ?? (this.single && memorablePrefix(this.single));
    if (prefix === null) return null;
    return isAllowedPrefix(prefix) && this.isCovered([prefix], place) ? prefix : null;
  }
}

/** The first words of a command. A person may approve all commands that begin with them. */
export type CommandPrefix = readonly string[];

/** Programs that run what their arguments say: a prefix with options only would allow everything. */
const interpreters: ReadonlySet<string> = new Set(
  (
    "awk bun bunx deno dash docker fish gawk git irb java julia ksh lua luajit make mawk node nodejs npm npx " +
    "osascript perl php pip pip3 pipx pnpm podman powershell powershell.exe pwsh py pypy pypy3 python python2 python3 " +
    "pythonw pyw Rscript ruby sh bash zsh tclsh ts-node tsx uv uvx wscript yarn"
  ).split(" "),
);

/** Programs that run the command in their arguments. */
const launchers: ReadonlySet<string> = new Set(
  (
    "busybox chroot chrt command doas env exec fakeroot find flock ionice nice nohup nsenter parallel pkexec prlimit runuser " +
    "setarch setpriv setsid start-stop-daemon stdbuf strace sudo taskset time timeout toybox unshare watch xargs"
  ).split(" "),
);

/** Programs that start another one. */
const startingPrograms: ReadonlySet<string> = new Set([
  ...launchers,
  ..."cmd cmd.exe eval script ssh su".split(" "),
]);

/**
 * Whether a prefix may be approved: not an empty one, and none that would approve everything, such as
 * `python3`, `bash -lc`, `git` or anything after `sudo`.
 */
export function isAllowedPrefix(prefix: CommandPrefix): boolean {
  const [path = "", ...rest] = prefix;
  const name = programName(path);
  if (name === "" || startingPrograms.has(name)) return false;
  // `python3.11` counts as `python`.
  if (!interpreters.has(name) && !interpreters.has(name.replace(/-?\d[\d.]*$/, ""))) return true;
  // `python3 -m pytest` is as specific as `npm test`.
  const named = rest[0] === "-m" ? rest[1] : rest[0];
  return named !== undefined && !named.startsWith("-");
}

function beginsWith(words: CommandWords, prefix: CommandPrefix): boolean {
  return prefix.length > 0 && prefix.every((word, at) => words[at] === word);
}

/** Subcommands that do the same kind of thing with any arguments. */
const taskWords: Readonly<Record<string, string>> = {
  "apt apt-get": "install update upgrade",
  bundle: "install update",
  bun: "install test",
  cargo: "add bench build check clippy doc fetch fmt test update",
  composer: "install require update",
  deno: "check fmt lint test",
  dotnet: "build restore test",
  git: "add branch checkout commit diff log merge mv restore show stash status switch tag",
  go: "build fmt get mod test vet",
  "gradle gradlew": "assemble build check test",
  "mvn mvnw": "compile install package test verify",
  "npm pnpm yarn": "add audit ci i install t test update",
  "pip pip3": "install",
  poetry: "add build install update",
  uv: "add lock sync",
};

/** Subcommands that are followed by the name of a task of the project. */
const namedTasks: Readonly<Record<string, string>> = {
  "bun deno npm pnpm yarn": "run task",
};

const pythonModules = new Set("black compileall flake8 isort mypy pylint pytest ruff unittest".split(" "));

const oneTaskPrograms = new Set(
  (
    "black c++ cc clang clang++ clippy-driver ctest eslint flake8 g++ gcc gofmt isort jest mocha mypy ninja nox prettier pylint " +
    "pytest rubocop ruff rustc rustfmt tox tsc vitest"
  ).split(" "),
);

/**
 * The program and its subcommand, as in `git commit` or `npm run build`, or only a program with a single
 * purpose. For all others, it is the whole command: less of `python3 -c`, `git push` or `docker run` would allow
 * anything.
 */
function memorablePrefix(words: CommandWords): CommandWords {
  const [path = "", task = "", name = ""] = words;
  const program = programName(path);
  if (oneTaskPrograms.has(program)) return words.slice(0, 1);
  if (lists(taskWords, program, task)) return words.slice(0, 2);
  // A target of make is a task's name; `NAME=value` is not.
  if (program === "make" && isPlainName(task)) return words.slice(0, 2);
  const isNamed = lists(namedTasks, program, task) && isPlainName(name);
  const isModule = /^python[\d.]*$/.test(program) && task === "-m" && pythonModules.has(name);
  return isNamed || isModule ? words.slice(0, 3) : words;
}

function lists(table: Readonly<Record<string, string>>, program: string, word: string): boolean {
  return Object.entries(table).some(
    ([programs, known]) => programs.split(" ").includes(program) && known.split(" ").includes(word),
  );
}

function isPlainName(word: string): boolean {
  return /^[A-Za-z][\w:-]*$/.test(word);
}

/** The scripts of one command, as far as they have been parsed. */
class ParsedScripts {
  readonly #parsed = new Map<string, Script | null>();

  /** Null for a script that exhausts the stack, since the parser is recursive. */
  parse(script: string): Script | null {
    const known = this.#parsed.get(script);
    if (known !== undefined) return known;
    const parsed = parsedOrNull(script);
    this.#parsed.set(script, parsed);
    return parsed;
  }
}

function parsedOrNull(script: string): Script | null {
  try {
    return parse(script);
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}

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
 * Finds commands that look as if they could destroy something for good: `rm` with a force option, also behind
 * `sudo` and the like, in `eval` and `trap`, and in scripts for a shell. This catches what is written openly
 * and is no protection: a command can be hidden, which is why there is a sandbox. What is nested too deeply
 * to be searched counts as dangerous. The search has limits, since a model can write anything.
 */
class Inspection {
  readonly #scripts: ParsedScripts;
  readonly #seen = new Set<string>();
  #charsLeft = MAX_CHARS_IN_ALL;

  constructor(scripts: ParsedScripts) {
    this.#scripts = scripts;
  }

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
    const parsed = this.#scripts.parse(script);
    if (parsed === null) return true;
    try {
      return this.#hasDangerousCommand(parsed, depth);
    } catch (error) {
      // The search is recursive, like the parser.
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

/** The script that follows `-c`, which may be written together with other letters, as in `-lc`. */
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
 * Whether a command is known to change nothing and to start no other program: it is a listed program, as the
 * system installs it. `git` is not listed, with any subcommand: `git status` starts programs that a repository's
 * configuration and attributes name (file system monitors, filters, diff drivers, hooks). Any directory can be a
 * repository, and no option or variable turns all of these off, since a repository chooses their names.
 */
function isSafeCommand([program, ...args]: CommandWords): boolean {
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

function programName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

const SYSTEM_DIRECTORIES: ReadonlySet<string> = new Set(["/bin", "/usr/bin", "/usr/local/bin"]);

/**
 * The name of a program that the system installs: a bare name, or a path in a system directory. Null for
 * other paths, where a program may have any name.
 */
function systemProgram(path: string): string | null {
  const slash = path.lastIndexOf("/");
  if (slash === -1) return path;
  return SYSTEM_DIRECTORIES.has(path.slice(0, slash)) ? path.slice(slash + 1) : null;
}

/** The script of a shell that the system installs; null for any other command. */
function plainShellScript(argv: readonly string[]): string | null {
  const [program = "", flag, script, ...rest] = argv;
  const shell = systemProgram(program);
  if (shell !== "bash" && shell !== "zsh" && shell !== "sh") return null;
  if ((flag !== "-lc" && flag !== "-c") || script === undefined || rest.length > 0) return null;
  return script;
}

interface WrittenWord {
  value: string;
  pos: number;
  end: number;
}

/**
 * The commands of a script that consists only of plain commands, joined by `&&`, `||`, `;`, `|` or newlines.
 * Null for a script with a redirection, an expansion of any kind, file name patterns included, an assignment,
 * a comment, a background job, or anything that shells interpret differently.
 *
 * The parser is not trusted to agree with every shell: each word is read again by strict rules of our own,
 * and only space or the operator may be between two words.
 */
function splitPlainScript(script: string, scripts: ParsedScripts): CommandWords[] | null {
  // A lone surrogate would reach the shell as another character.
  if (script.length > MAX_SCRIPT_CHARS || /\p{Cs}/u.test(script)) return null;
  const parsed = scripts.parse(script);
  if (parsed === null) return null;
  const { errors, shebang, commands: statements } = parsed;
  if ((errors?.length ?? 0) > 0 || shebang !== undefined) return null;
  const commands: WrittenWord[][] = [];
  for (const statement of statements) {
    const found = commandsOfStatement(statement);
    if (found === null) return null;
    for (const command of found) {
      const words = wordsOf(command, script);
      if (words === null) return null;
      commands.push(words);
    }
  }
  if (commands.length === 0 || !hasOnlySeparators(script, commands)) return null;
  return commands.map((words) => words.map(({ value }) => value));
}

function commandsOfStatement({ command, background }: Statement): CommandNode[] | null {
  if (background === true) return null;
  if (command.type !== "AndOr") return pipelineOf(command);
  return joined(command.commands.map(pipelineOf));
}

function pipelineOf(node: PipelineNode): CommandNode[] | null {
  if (node.type === "Command") return [node];
  if (node.type !== "Pipeline") return null;
  const isPlain = node.prefixes.length === 0 && node.operators.every((operator) => operator === "|");
  return isPlain ? [...node.commands] : null;
}

function joined(lists: readonly (CommandNode[] | null)[]): CommandNode[] | null {
  const complete = lists.filter((list) => list !== null);
  return complete.length === lists.length ? complete.flat() : null;
}

function wordsOf(node: CommandNode, script: string): WrittenWord[] | null {
  if (node.type !== "Command" || node.name === undefined || node.prefix.length > 0) return null;
  const words: WrittenWord[] = [];
  for (const part of [node.name, ...node.suffix]) {
    if (part.type !== "Word") return null;
    const { pos, end } = part;
    const value = readWord(script.slice(pos, end));
    if (value === null || value !== part.value) return null;
    words.push({ value, pos, end });
  }
  return words;
}

function hasOnlySeparators(script: string, commands: readonly (readonly WrittenWord[])[]): boolean {
  let at = 0;
  for (const [number, words] of commands.entries()) {
    for (const [index, { pos, end }] of words.entries()) {
      const between = script.slice(at, pos);
      const expected = index > 0 ? withinCommand : number > 0 ? betweenCommands : beforeFirst;
      if (!expected.test(between)) return false;
      at = end;
    }
  }
  return afterLast.test(script.slice(at));
}

const withinCommand = /^[ \t]+$/;
const beforeFirst = /^[ \t\n]*$/;
const betweenCommands = /^[ \t]*(?:&&|\|\||[;|\n])[ \t\n]*$/;
const afterLast = /^[ \t]*;?[ \t\n]*$/;

// Characters that bash, dash and zsh take literally anywhere in a word. All others have to be quoted, so that
// it does not matter which shell it is. `~`, `*`, `?`, `[` and a backslash are not among them: their effect
// depends on the shell or on existing files.
const bare = String.raw`[A-Za-z0-9_./:@%+,=-]|(?![\p{Z}\p{C}])[^\x00-\x7f]`;
const pieces = new RegExp(
  String.raw`(?<bare>${bare})|'(?<single>[^']*)'|"(?<double>(?:[^"\\$${"`"}]|\\[^\n])*)"`,
  "uy",
);

/** Reads a word of a script; null if a shell could change it. */
function readWord(text: string): string | null {
  // zsh replaces `=program` by the program's path.
  if (text.startsWith("=")) return null;
  let value = "";
  for (pieces.lastIndex = 0; pieces.lastIndex < text.length; ) {
    const groups = pieces.exec(text)?.groups;
    if (groups === undefined) return null;
    value += groups.bare ?? groups.single ?? unescaped(groups.double ?? "");
  }
  return value;
}

/** In double quotes a backslash is only removed before these. */
function unescaped(quoted: string): string {
  return quoted.replace(/\\(["\\$`])/g, "$1");
}
