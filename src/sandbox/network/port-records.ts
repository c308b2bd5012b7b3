import { join } from "node:path";
import {
  nullish,
  positiveInteger,
  type Shaped,
  strictObject,
  string,
  stringLike,
} from "../../lib/json/json-shape.js";
import { OwnedRecords } from "../../lib/owned-records.js";

/** A published port, as long as it is open. It is for people to look at, so a damaged record is left out. */
const recordShape = strictObject({
  sandbox: stringLike(/^[0-9a-f-]{36}$/),
  /** The name or the id of its session; null if it has none. */
  session: nullish(string),
  sandboxPort: positiveInteger,
  port: positiveInteger,
  url: string,
  command: string,
  workingDirectory: string,
});
type PortRecord = Shaped<typeof recordShape>;

/** A port that a brig on this machine has published. */
export type OpenPort = PortRecord & { pid: number };

const recordsIn = (brigHome: string) => new OwnedRecords(join(brigHome, "ports"), recordShape);

/** Records the port until the returned function is called. A record that cannot be written is done without. */
export async function recordPort(brigHome: string, port: PortRecord): Promise<() => Promise<void>> {
  try {
    return await recordsIn(brigHome).add(port.port, port);
  } catch {
    return async () => undefined;
  }
}

/** The ports that are open now, in the order of their numbers. Removes the records of processes that were killed. */
export async function openPorts(brigHome: string): Promise<OpenPort[]> {
  return (await recordsIn(brigHome).list()).sort((a, b) => a.port - b.port);
}
