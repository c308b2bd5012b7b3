import { stat } from "node:fs/promises";
import type { Environment } from "../config/env.js";
import { BrigError } from "../errors.js";

/**
 * Throws `config.invalid` when $BRIG_HOME is not a directory. A missing one is fine: it is created when it is
 * first needed.
 */
export async function checkHome({ brigHome, variables }: Environment): Promise<void> {
  const facts = await stat(brigHome).catch(() => null);
  if (facts === null || facts.isDirectory()) return;
  throw new BrigError(`brig keeps its files in ${brigHome}, but that is not a directory`, {
    code: "config.invalid",
    hint:
      variables.BRIG_HOME === undefined
        ? "move that file away, or set BRIG_HOME to a directory"
        : "set BRIG_HOME to a directory, or unset it to use ~/.brig",
  });
}
