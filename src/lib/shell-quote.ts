/** A way to quote the beginning of a text, as far as the pattern matches. */
interface Quoting {
  reach: RegExp;
  write(text: string): string;
}

/** In order of preference. Careful with `\`, `!` and `^`, since not only POSIX shells read them. */
const quotings: readonly Quoting[] = [
  { reach: /^[A-Za-z0-9_+\-./:@\]]*/, write: (text) => text },
  { reach: /^\^?[^'\\^]*/, write: (text) => `'${text}'` },
  { reach: /^[^`$!^]*/, write: (text) => `"${text.replace(/["\\]/g, "\\$&")}"` },
];

/** Joins arguments to a line that a POSIX shell splits into the same arguments. Quotes as Codex does. */
export function shellQuote(argv: readonly string[]): string {
  return argv.map(quoteWord).join(" ");
}

/** Quotes as much as possible at a time, so that the result has few parts. */
function quoteWord(word: string): string {
  if (word === "") return "''";
  let quoted = "";
  for (let rest = word; rest !== ""; ) {
    const lengths = quotings.map(({ reach }) => reach.exec(rest)?.[0].length ?? 0);
    const length = Math.max(...lengths);
    quoted += quotings[lengths.indexOf(length)]?.write(rest.slice(0, length)) ?? "";
    rest = rest.slice(length);
  }
  return quoted;
}
