import type { Config } from "../../../config/config-schema.js";
import type { Engine } from "../../../docker/engine-types.js";
import { parseBytes } from "../../../lib/bytes.js";
import { neutraliseLine } from "../../../lib/terminal/terminal.js";
import { openTaskImages, type RunImages } from "../../../runs/images/open-task-images.js";
import type { CliContext } from "../../context.js";
import type { BatchFlags } from "../batch-flags.js";

/** The images of a run, as the flags and the configuration say. */
export function openBatchImages(
  { offline = false, imageBudget }: Pick<BatchFlags, "offline" | "imageBudget">,
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
