import { BrigError } from "./errors.js";
import { suggest } from "./lib/suggest.js";

/** Every name that an object of options may have. */
export type OptionNames<Options> = Readonly<Record<keyof Options & string, true>>;

/** Who takes the options, as a caller writes it, and what some names that are none were probably meant to be. */
interface OptionsTaker {
  of: string;
  meant?: Readonly<Record<string, string>> | undefined;
}

/**
 * Error: `usage.invalid` for an option that there is not. Left aside it would be the default that holds: a slip in the name of a mode
 * would make everything writable.
 */
export function refuseUnknownOptions(
  options: object,
  known: Readonly<Record<string, true>>,
  { of, meant = {} }: OptionsTaker,
): void {
  if (typeof options !== "object" || options === null || Array.isArray(options))
    throw new BrigError(`${of} takes its options as an object`, { code: "usage.invalid" });
  for (const [name, value] of Object.entries(options))
    if (value !== undefined && !Object.hasOwn(known, name)) throw unknownOption(name, known, { of, meant });
}

function unknownOption(
  name: string,
  known: Readonly<Record<string, true>>,
  { of, meant = {} }: OptionsTaker,
): BrigError {
  const names = Object.keys(known);
  const nearest = (Object.hasOwn(meant, name) ? meant[name] : undefined) ?? suggest(name, names);
  return new BrigError(`${of} has no option ${JSON.stringify(name)}`, {
    code: "usage.invalid",
    hint: nearest === null ? `its options are ${names.join(", ")}` : `did you mean ${nearest}?`,
  });
}
