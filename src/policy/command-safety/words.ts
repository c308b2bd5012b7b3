/** One word of a command as the program would get it, as far as that can be told without running the shell. */
export interface CommandWord {
  /** Without its quotes. */
  value: string;
  /** Has a file name pattern that the shell replaces by any number of names. */
  hasPattern: boolean;
  /** Has a pattern that a file with a name like `--delete` fits, which would make an option of it. */
  mayBecomeOption: boolean;
}

/** A command and its arguments. */
export type CommandWords = readonly CommandWord[];

/** The words of an argument list, which no shell changes. */
export function literalWords(argv: readonly string[]): CommandWords {
  return argv.map((value) => ({ value, hasPattern: false, mayBecomeOption: false }));
}

// What bash, dash and zsh all take as it stands. Everything else has to be quoted: a character that one of them gives a meaning
// is then no question of which shell it is.
const bare = String.raw`[A-Za-z0-9_./:@%+,^=~\]-]|(?![\p{Z}\p{C}])[^\x00-\x7f]`;
const pieces = new RegExp(
  String.raw`(?<bare>${bare})|(?<pattern>[*?[])|\\(?<escaped>[\x20-\x7e])|'(?<single>[^']*)'|"(?<double>(?:[^"\\$${"`"}]|\\[^\n])*)"`,
  "uy",
);

/** Reads a word as it stands in a script; null where a shell would make something of it that cannot be told from here. */
export function readWord(text: string): CommandWord | null {
  if (/^=|^~[^/]/.test(text)) return null;
  let value = "";
  let hasPattern = false;
  for (pieces.lastIndex = 0; pieces.lastIndex < text.length; ) {
    const groups = pieces.exec(text)?.groups;
    if (groups === undefined) return null;
    value +=
      groups.bare ?? groups.pattern ?? groups.escaped ?? groups.single ?? unescaped(groups.double ?? "");
    hasPattern ||= groups.pattern !== undefined;
  }
  return { value, hasPattern, mayBecomeOption: hasPattern && /^(?:''|"")*[*?[]|^['"\\]*-/.test(text) };
}

/** In double quotes a backslash is taken away only before these. */
function unescaped(quoted: string): string {
  return quoted.replace(/\\(["\\$`])/g, "$1");
}
