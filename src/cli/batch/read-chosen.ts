import type { ReadSelectedOptions, SelectedTasks } from "../../batch/index.js";
import { readSelected } from "../../batch/index.js";
import type { CliContext } from "../../command/index.js";
import { say } from "../../command/index.js";
import { neutraliseLine } from "../../lib/terminal/terminal.js";

const SHOWN_SKIPPED = 50;

/** Reads the tasks that a command is to work on, and prints which tasks were left out. */
export async function readChosen(
  paths: readonly string[],
  options: Pick<ReadSelectedOptions, "selection" | "skipsUnusable">,
  { cwd, environment, signal, stderr }: CliContext,
): Promise<SelectedTasks> {
  const selected = await readSelected(paths, { cwd, variables: environment.variables, signal, ...options });
  const left = selected.skipped.length - SHOWN_SKIPPED;
  const lines = [
    ...selected.warnings,
    ...selected.skipped.slice(0, SHOWN_SKIPPED).map((reason) => `left out: ${reason}`),
    ...(left > 0 ? [`and ${left} more faults`] : []),
  ];
  for (const line of lines) await say(stderr, `brig: ${neutraliseLine(line)}\n`);
  return selected;
}
