import { looksDangerous } from "./dangerous-commands.js";
import { isKnownSafe } from "./safe-commands.js";

/** The harm that a command could do, judging by its text. */
export type CommandRisk =
  /** It only reads. */
  | "safe"
  /** It could destroy something for good. */
  | "dangerous"
  | "other";

/** In a script the most dangerous command counts. */
export function riskOf(argv: readonly string[]): CommandRisk {
  if (looksDangerous(argv)) return "dangerous";
  return isKnownSafe(argv) ? "safe" : "other";
}
