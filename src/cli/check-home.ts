import { type Stats, statSync } from "node:fs";
import type { CliContext } from "../command/index.js";
import { BrigError } from "../errors.js";
import type { Environment } from "../lib/env.js";

/** Why the environment cannot be read, such as a HOME that is a relative path; null if it can. */
export function environmentProblem(context: Pick<CliContext, "environment">): unknown {
  try {
    void context.environment;
    return null;
  } catch (error) {
    return error;
  }
}

/**
 * Throws `config.invalid` when $BRIG_HOME is not a directory. A missing one is fine: it is created when it is
 * first needed.
 */
export function checkHome({ brigHome, variables }: Environment): void {
  const facts = statOrNull(brigHome);
  if (facts === null || facts.isDirectory()) return;
  throw new BrigError(`brig keeps its files in ${brigHome}, but that is not a directory`, {
    code: "config.invalid",
    hint:
      variables.BRIG_HOME === undefined
        ? "move that file away, or set BRIG_HOME to a directory"
        : "set BRIG_HOME to a directory, or unset it to use ~/.brig",
  });
}

/** Synchronous, because loading node:fs/promises takes longer than the call. */
function statOrNull(path: string): Stats | null {
  try {
    return statSync(path);
  } catch {
    return null;
  }
}
