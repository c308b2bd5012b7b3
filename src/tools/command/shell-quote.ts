import { basename } from "node:path";

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

/** The script of `bash -c SCRIPT`, or of another shell that is started like this; null for any other command. */
export function shellScript(argv: readonly string[]): string | null {
  const [shell = "", flag = "", script = null] = argv;
  const runsScript = argv.length === 3 && /^-l?c$/.test(flag) && /^(?:ba|z|da)?sh$/.test(basename(shell));
  return runsScript ? script : null;
}

/** A command for a person to read. Of `bash -c SCRIPT` only the script is shown. */
export function commandForPeople(argv: readonly string[]): string {
  return shellScript(argv) ?? shellQuote(argv);
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
