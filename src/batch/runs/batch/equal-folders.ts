import { BrigError } from "../../../errors.js";
import { taskFolderName } from "../results/run-files.js";

/** Error: `usage.invalid` for tasks such as `a/b` and `a__b`, which would share a folder. */
export function refuseEqualFolders(tasks: readonly { name: string }[]): void {
  const names = new Map<string, string>();
  for (const { name } of tasks) {
    const folder = taskFolderName(name);
    const other = names.get(folder);
    if (other !== undefined || folder === "." || folder === "..")
      throw new BrigError(
        other === undefined
          ? `a task cannot be named "${name}"`
          : `the results of the tasks ${other} and ${name} would have the same folder`,
        { code: "usage.invalid", hint: "rename one of them, or leave it out with --exclude" },
      );
    names.set(folder, name);
  }
}
