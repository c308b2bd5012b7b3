import { createHash } from "node:crypto";
import { hostname } from "node:os";

/**
 * The label of what is on the engine without a record in any `$BRIG_HOME`: volumes that sandboxes share. Its value tells to which
 * one it belongs, so that brig of another leaves it alone.
 */
export const homeLabel = "brig.home";

/** Another machine may have the same path, and use the same engine. */
export function homeId(brigHome: string): string {
  return createHash("sha256")
    .update(JSON.stringify([hostname(), brigHome]))
    .digest("hex")
    .slice(0, 16);
}

export function homeLabels(brigHome: string): Record<string, string> {
  return { [homeLabel]: homeId(brigHome) };
}
