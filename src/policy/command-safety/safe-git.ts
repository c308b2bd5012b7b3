import type { CommandWords } from "./words.js";

/** Options before the subcommand that change only what is looked at, and how many words each takes. */
const globalOptions: Readonly<Record<string, number>> = {
  "-C": 2,
  "-P": 1,
  "--no-pager": 1,
  "--no-optional-locks": 1,
  "--literal-pathspecs": 1,
};

/**
 * Options that write a file or start a program. git understands a long option from its first letters on, so the beginning of one is
 * as good as the whole.
 */
const harmfulOptions = ["--output", "--ext-diff", "--textconv", "--exec", "--paginate"];

/** Options with which `git branch` lists. Those with a value may have it after `=` or, where it must be given, as the next word. */
const listingFlags =
  /^(?:-[avrqi]+|--(?:all|remotes|verbose|quiet|ignore-case|list|show-current|no-column|no-color|no-abbrev))$/;
const listingValues =
  /^--(?:contains|no-contains|merged|no-merged|points-at|sort|format|column|color|abbrev)(?:=|$)/;
const takesNextWord = /^--(?:contains|no-contains|merged|no-merged|points-at|sort|format)$/;

/** `git status|log|diff|show|branch` as far as they only look. `words` come after `git`. */
export function isSafeGit(words: CommandWords): boolean {
  let at = 0;
  for (let word = words[0]; word?.value.startsWith("-") === true; word = words[at]) {
    const length = Object.hasOwn(globalOptions, word.value) ? globalOptions[word.value] : undefined;
    if (length === undefined) return false;
    at += length;
  }
  const [subcommand, ...args] = words.slice(at);
  // A pattern for `-C` could stand for two words, the second of which is then the subcommand.
  if (words.slice(0, at + 1).some((word) => word.hasPattern)) return false;
  switch (subcommand?.value) {
    case "status":
    case "log":
    case "diff":
    case "show":
      return args.every((arg) => !arg.mayBecomeOption && !isHarmful(arg.value));
    case "branch":
      return isListing(args);
    default:
      return false;
  }
}

function isHarmful(option: string): boolean {
  const [name = ""] = option.split("=");
  if (!name.startsWith("--") || name === "--") return false;
  return harmfulOptions.some((harmful) => harmful.startsWith(name) || name.startsWith(harmful));
}

/** A name after `branch` makes one, unless it is a pattern for `--list` or the value of an option that lists. */
function isListing(args: CommandWords): boolean {
  const isList = args.some(({ value }) => value === "--list");
  let isValue = false;
  for (const { value, hasPattern } of args) {
    if (hasPattern) return false;
    const isFlag = listingFlags.test(value) || listingValues.test(value);
    if (!isFlag && !isValue && (!isList || value.startsWith("-"))) return false;
    if (isValue && value.startsWith("-")) return false;
    isValue = takesNextWord.test(value);
  }
  return true;
}
