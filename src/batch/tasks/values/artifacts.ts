import { posix } from "node:path";
import { shown } from "../notes/fault-text.js";
import type { FaultPlace, TaskNotes } from "../notes/task-notes.js";
import type { TaskArtifact } from "../task.js";

export interface ArtifactSettings {
  source: string;
  destination?: string | undefined;
  exclude?: readonly string[] | undefined;
}

/** The manifest of the artifacts lies beside them. */
const RESERVED = "manifest.json";

/** Null, with a fault, for paths that lead elsewhere than they seem to. */
export function artifactOf(
  { source, destination, exclude = [] }: ArtifactSettings,
  notes: TaskNotes,
  place: FaultPlace,
): TaskArtifact | null {
  const refuse = (problem: string) => {
    notes.refuse(problem, place);
    return null;
  };
  if (!isPlainPath(source)) return refuse(`the source ${shown(source)} must be a path without ".."`);
  if (destination === undefined) return { source, destination: null, exclude };
  if (!isPlainPath(destination) || posix.isAbsolute(destination))
    return refuse(`the destination ${shown(destination)} must be a relative path without ".."`);
  if (posix.normalize(destination) === RESERVED) return refuse(`the destination ${RESERVED} is reserved`);
  return { source, destination, exclude };
}

/** Whether a path is not empty, has no step upwards and no character that cannot be in a name. */
function isPlainPath(path: string): boolean {
  return path !== "" && !path.split("/").includes("..") && !/\p{Cc}/u.test(path);
}
