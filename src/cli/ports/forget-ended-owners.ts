import { access } from "node:fs/promises";
import { controlDirectory, openControlRecords } from "../../command/index.js";
import { openPorts } from "../../sandbox/index.js";

/**
 * Removes what killed processes have left below `$BRIG_HOME`: the records of their open ports, and of their sandboxes that took requests for ports.
 * Errors are ignored: `brig port`, which alone reads these records, does not list those of ended processes anyway.
 */
export async function forgetEndedOwners(brigHome: string): Promise<void> {
  const readSandboxes = async () => {
    // openControlRecords would make this directory, and a home that has none is to stay as it is.
    await access(controlDirectory(brigHome));
    await (await openControlRecords(brigHome)).records.list();
  };
  await Promise.allSettled([readSandboxes(), openPorts(brigHome)]);
}
