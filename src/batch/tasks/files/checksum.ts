import { createHash } from "node:crypto";
import { type TaskPart, type TaskParts, taskParts } from "../task.js";
import type { TreeEntry } from "./task-tree.js";

/** Contents that a checksum is made of. A part is a list of texts, whose order counts. */
export type PartContents = Readonly<Partial<Record<TaskPart, readonly string[]>>>;

export function taskChecksums(contents: PartContents): { checksum: string; parts: TaskParts } {
  const parts = Object.fromEntries(
    taskParts.map((part) => [part, sha256(JSON.stringify(contents[part] ?? []))]),
  ) as TaskParts;
  return { checksum: sha256(JSON.stringify(taskParts.map((part) => [part, parts[part]]))), parts };
}

/** One text for each file: its path, its content or its target, and whether it is executable. */
export function fileLines(entries: Iterable<TreeEntry>): string[] {
  const lines: string[] = [];
  for (const entry of entries) {
    if (entry.kind === "file")
      lines.push(JSON.stringify([entry.path, entry.isExecutable ? "program" : "file", entry.sha256]));
    if (entry.kind === "link") lines.push(JSON.stringify([entry.path, "link", entry.target]));
  }
  return lines.toSorted();
}

/** The files of a task by the part that each belongs to. */
export function partsOf(entries: Iterable<TreeEntry>, partOf: (path: string) => TaskPart): PartContents {
  const all = [...entries];
  return Object.fromEntries(
    taskParts.map((part) => [part, fileLines(all.filter(({ path }) => partOf(path) === part))]),
  );
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
