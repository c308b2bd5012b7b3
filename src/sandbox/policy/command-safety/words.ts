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
export function readWord(text: string): string | null {
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
