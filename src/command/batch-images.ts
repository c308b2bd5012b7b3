import type { Config } from "../agent/index.js";
import type { RunImages } from "../batch/index.js";
import { openTaskImages } from "../batch/index.js";
import { parseBytes } from "../lib/bytes.js";
import { neutraliseLine } from "../lib/terminal/terminal.js";
import type { Engine } from "../sandbox/index.js";
import type { CliContext } from "./context.js";

/** The images of a run, as the flags and the configuration say. */
export function openBatchImages(
  { offline = false, imageBudget }: { offline?: boolean | undefined; imageBudget?: number | undefined },
  { engine, config, context }: { engine: Engine; config: Config; context: CliContext },
): RunImages {
  const { alias, budget } = config.images;
  return openTaskImages({
    engine,
    aliases: alias,
    isOffline: offline,
    brigHome: context.environment.brigHome,
    budgetBytes: imageBudget ?? (budget === undefined ? undefined : (parseBytes(budget) ?? undefined)),
    onWarning: (error) => {
      const reason = error instanceof Error ? error.message : String(error);
      context.stderr.write(`${neutraliseLine(`brig: images of tasks cannot be removed: ${reason}`)}\n`);
    },
  });
}
