const safeWord = /^[A-Za-z0-9_+\-./:@\]]+$/;
const safeInDoubleQuotes = /^[^"$`\\!^]*$/;

/** One line that a POSIX shell reads back as exactly these arguments. */
export function shellQuote(argv: readonly string[]): string {
  return argv.map(quoteWord).join(" ");
}

function quoteWord(word: string): string {
  if (safeWord.test(word)) return word;
  if (!word.includes("'")) return `'${word}'`;
  if (safeInDoubleQuotes.test(word)) return `"${word}"`;
  return `'${word.replaceAll("'", `'"'"'`)}'`;
}
