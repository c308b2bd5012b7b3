import { chmod, readdir, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { BrigError } from "../../../errors.js";
import { errnoOf, systemReason } from "../../../lib/errno.js";
import { makeDirectory } from "../../../lib/files/make-directory.js";
import { isTaskName, nameRule } from "../values/task-name.js";
import { taskTemplate } from "./template.js";

/** Writes a new task, whose name is that of the directory. Returns the paths of its files, relative to it. */
export async function initTask(directory: string): Promise<string[]> {
  const name = basename(directory);
  if (!isTaskName(name))
    throw usage(`${JSON.stringify(name)} cannot be the name of a task`, { hint: nameRule });
  try {
    await makeDirectory(directory);
    if ((await readdir(directory)).length > 0)
      throw usage(`${directory} is not empty`, { hint: "name a directory that does not exist yet" });
    for (const [path, text] of Object.entries(taskTemplate)) await writeNew(join(directory, path), text);
  } catch (cause) {
    if (cause instanceof BrigError || errnoOf(cause) === undefined) throw cause;
    throw usage(`cannot write to ${directory}: ${systemReason(cause)}`, { cause });
  }
  return Object.keys(taskTemplate);
}

async function writeNew(file: string, text: string): Promise<void> {
  await makeDirectory(dirname(file));
  await writeFile(file, text, { flag: "wx" });
  if (text.startsWith("#!")) await chmod(file, 0o755);
}

function usage(message: string, options: { hint?: string; cause?: unknown }): BrigError {
  return new BrigError(message, { code: "usage.invalid", ...options });
}
