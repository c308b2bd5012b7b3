import { looksDangerous } from "./dangerous-commands.js";
import { isKnownSafe } from "./safe-commands.js";

/** What a command could do, as far as its words tell. */
export type CommandRisk =
  /** Only looks. */
  | "safe"
  /** Looks as if it could destroy something for good. */
  | "dangerous"
  | "other";

/** Judges an argument list. Of a script the worst command counts. */
export function riskOf(argv: readonly string[]): CommandRisk {
  if (looksDangerous(argv)) return "dangerous";
  return isKnownSafe(argv) ? "safe" : "other";
}
