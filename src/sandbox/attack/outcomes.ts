import { errnoName } from "../process/errno-names.js";
import { allAttempts } from "./attempts/all-attempts.js";

/** The outcome of each attempt, by its name: "done", names of errors, "nothing", "found …", "untried: …" or "ended by signal …". */
export type Outcomes = Readonly<Record<string, string>>;

/** One of the program's attempts is only a check of another one, that files can be made where the policy says so. */
const CHECK = "places-that-stopped-being-writable";

/** Longer than any outcome that the program prints. */
const MOST_CHARS = 1000;

/**
 * Reads what the program `attempts` prints: a line for each attempt, its name, a tab and its outcome, with `#13` for errno 13.
 * It ran in a container, so only what is known is believed.
 */
export function parseOutcomes(output: string): Outcomes {
  const known = new Set([CHECK, ...allAttempts.map(({ attempt }) => attempt)]);
  const outcomes: Record<string, string> = {};
  for (const line of output.split("\n")) {
    const [name = "", outcome = ""] = line.split("\t");
    if (!known.has(name) || outcome === "" || outcomes[name] !== undefined) continue;
    outcomes[name] = withNames(outcome.slice(0, MOST_CHARS));
  }
  return outcomes;
}

function withNames(outcome: string): string {
  return outcome.replace(/(?<![^ ])#([0-9]{1,4})(?![^ ])/g, (_, number: string) => errnoName(Number(number)));
}
