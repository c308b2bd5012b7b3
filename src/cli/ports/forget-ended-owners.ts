import { access } from "node:fs/promises";
import { openPorts } from "../../sandbox/network/port-records.js";
import { controlDirectory, openControlRecords } from "./control/control-records.js";

/**
 * Removes what killed processes have left below `$BRIG_HOME`: the records of their open ports, and of their sandboxes that took requests for ports.
 * Only `brig port` reads these, and leaves out the same ones, so it is no error if they cannot be read or removed.
 */
export async function forgetEndedOwners(brigHome: string): Promise<void> {
  const readSandboxes = async () => {
    // Opening them would make the directory.
    await access(controlDirectory(brigHome));
    await (await openControlRecords(brigHome)).records.list();
  };
  await Promise.allSettled([readSandboxes(), openPorts(brigHome)]);
}
