import { shown } from "../notes/fault-text.js";
import type { TaskNotes } from "../notes/task-notes.js";
import { TASK_FILE } from "./reading.js";

const newest = "1.4";
const known = ["1", "1.0", "1.1", "1.2", "1.3", newest];

/** A file without a version has the newest one. Null, with a fault, for a version that brig does not know. */
export function schemaVersion(
  {
    schema_version: version,
    version: older,
  }: { schema_version?: string | undefined; version?: string | undefined },
  notes: TaskNotes,
): { hasOlderDefaults: boolean } | null {
  if (version === undefined) return { hasOlderDefaults: older !== undefined && older !== newest };
  if (known.includes(version)) return { hasOlderDefaults: version !== newest };
  notes.refuse(`is ${shown(version)}, and brig reads 1.0 to ${newest}`, {
    file: TASK_FILE,
    field: "schema_version",
  });
  return null;
}
