import { formatBytes } from "../../../lib/bytes.js";
import type { TaskTree } from "../files/task-tree.js";
import type { TaskNotes } from "../notes/task-notes.js";
import type { TaskSolution } from "../task.js";
import { checkedTable } from "../values/checked-table.js";
import { parseYaml } from "../values/parse-text.js";
import { solutionYamlSchema } from "./schema.js";

/** The kernel takes no longer argument of a program, which is how the commands get to the shell. */
const MAX_COMMAND_BYTES = 120 * 1024;

/** `solution.sh`, or the commands of `solution.yaml` one after the other in the same shell. */
export function readSolution(tree: TaskTree, notes: TaskNotes): TaskSolution | null {
  const file = ["solution.sh", "solution.yaml"].find((name) => tree.hasFile(name));
  const text = file === undefined ? null : tree.text(file, notes);
  if (file === undefined || text === null) return null;
  const script = file === "solution.sh" ? text : typedCommands(file, text, notes);
  if (script === null) return null;
  if (Buffer.byteLength(script) <= MAX_COMMAND_BYTES) return { kind: "commands", commands: [script] };
  notes.warn(
    `${file}: it has more than ${formatBytes(MAX_COMMAND_BYTES)}, so the agent "oracle" cannot run it`,
  );
  return null;
}

function typedCommands(file: string, text: string, notes: TaskNotes): string | null {
  const value = parseYaml(text, { notes, file });
  const steps =
    value === undefined ? null : checkedTable(solutionYamlSchema, value, { notes, place: { file } });
  if (steps === null) return null;
  if (steps.every(({ block, append_enter: isEntered }) => block && isEntered))
    return steps.map(({ command }) => command).join("\n");
  notes.warn(`${file}: it types keys into a program, which the agent "oracle" cannot do`);
  return null;
}
