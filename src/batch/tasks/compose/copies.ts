import { posix } from "node:path";
import type { TaskTree } from "../files/task-tree.js";
import { shown } from "../notes/fault-text.js";
import type { TaskNotes } from "../notes/task-notes.js";
import type { TaskCopy } from "../task.js";
import type { ServiceSettings } from "./schema.js";

export interface CopyOptions {
  tree: TaskTree;
  notes: TaskNotes;
  /** Directories that the format's own runner mounts, and brig provides in its own way. */
  providedDirectories: readonly string[];
  /** Whether a file of the task belongs to its tests or its solution. */
  isOfGrader(path: string): boolean;
}

interface Volume {
  /** Empty for a directory of the container. */
  source: string;
  target: string;
  isReadOnly: boolean;
}

/**
 * The task's own files that a service mounts. Its container gets copies of them, so that programs in it cannot change
 * the task. Tests and solution are left out. Any other directory of the host is a fault.
 */
export function copiesOf({ volumes = [] }: ServiceSettings, file: string, options: CopyOptions): TaskCopy[] {
  return volumes.map(volumeOf).flatMap((volume) => {
    const target = posix.normalize(volume.target).replace(/(.)\/$/, "$1");
    if (options.providedDirectories.includes(target)) return [];
    return copyOf({ ...volume, target }, file, options) ?? [];
  });
}

function volumeOf(volume: NonNullable<ServiceSettings["volumes"]>[number]): Volume {
  if (typeof volume === "string") {
    const [first = "", second, modes = ""] = volume.split(":");
    if (second === undefined) return { source: "", target: first, isReadOnly: false };
    const source = /^[./~]/.test(first) ? first : "";
    return { source, target: second, isReadOnly: modes.split(",").includes("ro") };
  }
  const { type, source = "", target, read_only: isReadOnly = false } = volume;
  return { source: type === "volume" ? "" : source || type, target, isReadOnly };
}

function copyOf({ source, target, isReadOnly }: Volume, file: string, options: CopyOptions): TaskCopy | null {
  const { tree, notes, isOfGrader } = options;
  const place = { file, field: "volumes" };
  const refuse = (problem: string) => {
    notes.refuse(problem, place);
    return null;
  };
  if (!posix.isAbsolute(target) || target === "/")
    return refuse(`mounts something at ${shown(target)}, where nothing can be mounted`);
  if (source === "") {
    notes.warn(`${file}: the volume at ${shown(target)} is a directory of the container itself`);
    return null;
  }
  const path = posix.join(posix.dirname(file), source).replace(/(.)\/$/, "$1");
  if (!source.startsWith(".") || path === ".." || path.startsWith("../"))
    return refuse(`mounts ${shown(source)} of the host, which no task may`);
  const isRoot = path === ".";
  if (!isRoot && isOfGrader(path)) return refuse(`mounts ${shown(source)}, which the agent must not see`);
  if (!isRoot && !tree.hasFile(path) && !tree.hasDirectory(path))
    return refuse(`mounts ${shown(source)} of the host, which no task may`);
  const below = isRoot ? [...tree.entries()] : tree.below(path);
  const hidden = below
    .filter((entry) => isOfGrader(entry.path))
    .map((entry) => posix.relative(path, entry.path));
  if (hidden.length > 0)
    notes.warn(
      `${file}: tests and solution are left out of the copy of ${shown(source)} at ${shown(target)}`,
    );
  return { source: tree.absolute(path), target, exclude: hidden, isReadOnly };
}
