import { BrigError } from "./errors.js";
import { suggest } from "./lib/suggest.js";

/** The names of all options of a type. */
export type OptionNames<Options> = Readonly<Record<keyof Options & string, true>>;

interface OptionsOwner {
  /** The function that takes the options, as its caller writes it. */
  of: string;
  /** The right options for some wrong names. */
  meant?: Readonly<Record<string, string>> | undefined;
}

/** Error: `usage.invalid` for an unknown option. Ignored, a typo in a name could make everything writable. */
export function refuseUnknownOptions(
  options: object,
  known: Readonly<Record<string, true>>,
  { of, meant = {} }: OptionsOwner,
): void {
  if (typeof options !== "object" || options === null || Array.isArray(options))
    throw new BrigError(`${of} takes its options as an object`, { code: "usage.invalid" });
  for (const [name, value] of Object.entries(options))
    if (value !== undefined && !Object.hasOwn(known, name)) throw unknownOption(name, known, { of, meant });
}

function unknownOption(
  name: string,
  known: Readonly<Record<string, true>>,
  { of, meant = {} }: OptionsOwner,
): BrigError {
  const names = Object.keys(known);
  const nearest = (Object.hasOwn(meant, name) ? meant[name] : undefined) ?? suggest(name, names);
  return new BrigError(`${of} has no option ${JSON.stringify(name)}`, {
    code: "usage.invalid",
    hint: nearest === null ? `its options are ${names.join(", ")}` : `did you mean ${nearest}?`,
  });
}
