import { type CommandNode, type PipelineNode, parse, type Statement } from "unbash";

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

const MAX_SCRIPT_CHARS = 64 * 1024;

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
export function splitPlainScript(script: string): CommandWords[] | null {
  // A lone surrogate would reach the shell as another character.
  if (script.length > MAX_SCRIPT_CHARS || /\p{Cs}/u.test(script)) return null;
  const parsed = parsedOrNull(script);
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

/** The parser is recursive: a script that exhausts the stack is not plain. */
function parsedOrNull(script: string): ReturnType<typeof parse> | null {
  try {
    return parse(script);
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
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

export type CommandWords = readonly string[];

export function programName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

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
