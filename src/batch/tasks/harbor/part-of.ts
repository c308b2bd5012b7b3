import type { TaskPart } from "../task.js";

/** The part of a task that a file belongs to. */
export function partOf(path: string): TaskPart {
  const inner = path.replace(/^steps\/[^/]+\//, "");
  if (inner === "instruction.md") return "instruction";
  const [first] = inner.split("/");
  if (first === "tests" || first === "solution" || first === "environment") return first;
  return first === "workdir" ? "environment" : "settings";
}
