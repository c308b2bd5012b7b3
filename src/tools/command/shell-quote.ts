/** How far into a text a way of writing it reaches, and what it makes of that much. */
interface Quoting {
  reach: RegExp;
  write(text: string): string;
}

/** In order of preference. Programs other than POSIX shells read these as well, which is why `\`, `!` and `^` have so few places. */
const quotings: readonly Quoting[] = [
  { reach: /^[A-Za-z0-9_+\-./:@\]]*/, write: (text) => text },
  { reach: /^\^?[^'\\^]*/, write: (text) => `'${text}'` },
  { reach: /^[^`$!^]*/, write: (text) => `"${text.replace(/["\\]/g, "\\$&")}"` },
];

/** One line that a POSIX shell reads back as exactly these arguments, in the spelling that Codex's users know. */
export function shellQuote(argv: readonly string[]): string {
  return argv.map(quoteWord).join(" ");
}

/** The fewest stretches, each as far as any quoting reaches. */
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
