import type { OptionNames } from "../../known-options.js";
import type { SessionFileOptions } from "./session-file.js";

export const sessionFileOptionNames: OptionNames<SessionFileOptions> = {
  home: true,
  threadId: true,
  now: true,
  claimant: true,
  write: true,
};
