import type { DefineCommand } from "../command/index.js";

export interface CommandEntry {
  name: string;
  /** The heading in the help that it is under. */
  group?: string;
  summary: string;
  load: () => Promise<DefineCommand>;
  /**
   * Exits with the code of the program in the sandbox, and with 125 for every failure of brig, bad usage too.
   */
  passesExitCodeOn?: boolean;
  /** Not in the help: it is for brig itself. */
  isHidden?: boolean;
  /** With `--json` the command prints one event per line, so an error is printed as an event as well. */
  printsEvents?: boolean;
}
