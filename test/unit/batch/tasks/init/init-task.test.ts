import { mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { initTask } from "../../../../../src/batch/tasks/init-task.js";
import { lintTasks } from "../../../../../src/batch/tasks/lint/lint-tasks.js";
import { readTasks } from "../../../../../src/batch/tasks/read-tasks.js";
import { directoryWith } from "../../../../support/task-directories.js";

describe("a new task", () => {
  it("is complete: nothing is found wrong with it, and its verifier is separate", async () => {
    const root = await directoryWith({});
    const files = await initTask(join(root, "my-task"));
    const options = { cwd: root, variables: {} };
    const [task] = await readTasks([root], options);
    expect(task).toMatchObject({
      name: "my-task",
      warnings: [],
      steps: [
        {
          solution: { script: "solve.sh" },
          artifacts: [{ source: "/app/report.txt" }],
          verifier: { mode: "separate" },
        },
      ],
    });
    expect(await lintTasks([root], options)).toEqual({ tasks: 1, findings: [] });
    for (const file of files.filter((name) => name.endsWith(".sh")))
      expect((await stat(join(root, "my-task", file))).mode & 0o111, file).not.toBe(0);
  });

  it("is written to an empty directory too, and over nothing", async () => {
    const root = await directoryWith({ empty: null, "full/notes.md": "mine" });
    await initTask(join(root, "empty"));
    for (const name of ["empty", "full"])
      await expect(initTask(join(root, name))).rejects.toMatchObject({
        code: "usage.invalid",
        message: `${join(root, name)} is not empty`,
      });
    expect(await readFile(join(root, "full/notes.md"), "utf8")).toBe("mine");
  });

  it("is refused for a directory whose name cannot be that of a task, or that is a file", async () => {
    const root = await directoryWith({});
    await expect(initTask(join(root, "my task"))).rejects.toMatchObject({ code: "usage.invalid" });
    await mkdir(join(root, "a"));
    await writeFile(join(root, "a/file"), "");
    await expect(initTask(join(root, "a/file"))).rejects.toMatchObject({ code: "usage.invalid" });
  });
});
