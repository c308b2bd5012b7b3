import { stringify } from "smol-toml";
import { readHarborTask } from "../../../../../src/batch/tasks/harbor/read-task.js";
import type { ReadOptions } from "../../../../../src/batch/tasks/read-task.js";
import type { Task } from "../../../../../src/batch/tasks/task.js";
import { directoryWith, type Files } from "../../../../support/task-directories.js";

/** What a Harbor task has besides its task.toml. */
export const plainFiles: Files = {
  "instruction.md": "Write the sum to /app/sum.txt.\n",
  "environment/Dockerfile": "FROM debian:12\nWORKDIR /app\n",
  "tests/test.sh": "#!/bin/bash\necho 1 > /logs/verifier/reward.txt\n",
};

export type Toml = string | Record<string, unknown>;

/** A directory with these files. A file that is undefined is left out. */
export async function harborDirectory(
  toml: Toml,
  files: Readonly<Record<string, Files[string] | undefined>> = {},
): Promise<string> {
  const all = { ...plainFiles, "task.toml": typeof toml === "string" ? toml : stringify(toml), ...files };
  return await directoryWith(
    Object.fromEntries(Object.entries(all).filter(([, content]) => content !== undefined)) as Files,
  );
}

const named = (toml: Toml): Toml =>
  typeof toml === "string" || "task" in toml ? toml : { ...toml, task: { name: "org/sum" } };

export async function readToml(
  toml: Toml,
  { files, ...options }: { files?: Parameters<typeof harborDirectory>[1] } & Partial<ReadOptions> = {},
): Promise<Task> {
  const directory = await harborDirectory(named(toml), files);
  const read = await readHarborTask(directory, { variables: {}, ...options });
  if (read.kind === "task") return read.task;
  throw new Error(`refused: ${JSON.stringify(read.faults)}`);
}

/** The faults as `FILE: FIELD: PROBLEM`. */
export async function faultsOf(
  toml: Toml,
  { files, ...options }: { files?: Parameters<typeof harborDirectory>[1] } & Partial<ReadOptions> = {},
): Promise<string[]> {
  const directory = await harborDirectory(named(toml), files);
  const read = await readHarborTask(directory, { variables: {}, ...options });
  if (read.kind === "task") return [];
  return read.faults.map(({ file, field, problem }) => [file, field, problem].filter(Boolean).join(": "));
}
