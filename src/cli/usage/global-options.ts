import { type Command, Option } from "commander";
import type { OutputChoice } from "../../command/index.js";

const GROUP = "Options of every command:";

/** What every command of brig takes, before or behind its name. */
export function globalOptions(): Option[] {
  return [
    new Option(
      "-q, --quiet",
      "print results, errors and questions, but no progress and no remarks",
    ).helpGroup(GROUP),
    new Option("--color <when>", "when to use colours; auto: at a terminal, unless NO_COLOR is set")
      .choices(["auto", "always", "never"])
      .helpGroup(GROUP),
  ];
}

/** Adds them to a command and to those below it. */
export function addGlobalOptions(command: Command): void {
  for (const option of globalOptions()) command.addOption(option);
  for (const below of command.commands) addGlobalOptions(below);
}

export function isGlobalOption({ long }: Option): boolean {
  return globalOptions().some((option) => option.long === long);
}

/** Behind the name of a command counts what is said last. */
export function outputChoice(command: Command): OutputChoice {
  const said = { ...command.parent?.optsWithGlobals(), ...command.opts() } as {
    quiet?: boolean;
    color?: OutputChoice["color"];
  };
  return { isQuiet: said.quiet === true, color: said.color ?? "auto" };
}

/** How many words at the beginning are options of every command. */
export function countGlobals(words: readonly string[]): number {
  let count = 0;
  for (;;) {
    const word = words[count] ?? "";
    if (word === "--color") count += 2;
    else if (word === "-q" || word === "--quiet" || word.startsWith("--color=")) count++;
    else return Math.min(count, words.length);
  }
}
