/** A command and its arguments, without their quotes. */
export type CommandWords = readonly string[];

// What bash, dash and zsh all take as it stands, wherever it is in a word. Everything else has to be quoted: a character that one of
// them gives a meaning is then no question of which shell it is. `~`, `*`, `?`, `[` and a backslash are not among them: what a word
// with one of these becomes depends on the files that are there, or on the shell.
const bare = String.raw`[A-Za-z0-9_./:@%+,=-]|(?![\p{Z}\p{C}])[^\x00-\x7f]`;
const pieces = new RegExp(
  String.raw`(?<bare>${bare})|'(?<single>[^']*)'|"(?<double>(?:[^"\\$${"`"}]|\\[^\n])*)"`,
  "uy",
);

/** Reads a word as it stands in a script; null where a shell would make something of it that cannot be told from here. */
export function readWord(text: string): string | null {
  // zsh puts the path of a program in the place of `=program`.
  if (text.startsWith("=")) return null;
  let value = "";
  for (pieces.lastIndex = 0; pieces.lastIndex < text.length; ) {
    const groups = pieces.exec(text)?.groups;
    if (groups === undefined) return null;
    value += groups.bare ?? groups.single ?? unescaped(groups.double ?? "");
  }
  return value;
}

/** In double quotes a backslash is taken away only before these. */
function unescaped(quoted: string): string {
  return quoted.replace(/\\(["\\$`])/g, "$1");
}
