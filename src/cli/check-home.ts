import { stat } from "node:fs/promises";
import type { Environment } from "../config/env.js";
import { BrigError } from "../errors.js";

/** Error: `config.invalid` where brig's own directory is something else. One that is not there is made when it is needed. */
export async function checkHome({ brigHome, variables }: Environment): Promise<void> {
  const facts = await stat(brigHome).catch(() => null);
  if (facts === null || facts.isDirectory()) return;
  throw new BrigError(`brig keeps its files in ${brigHome}, but that is not a directory`, {
    code: "config.invalid",
    hint:
      variables.BRIG_HOME === undefined
        ? "move what is there away, or set BRIG_HOME to a directory"
        : "set BRIG_HOME to a directory, or leave it unset: then it is ~/.brig",
  });
}
