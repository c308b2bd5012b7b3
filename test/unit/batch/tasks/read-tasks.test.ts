import { symlink } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { examineTasks, readTasks } from "../../../../src/batch/tasks/read-tasks.js";
import { isBrigError } from "../../../../src/errors.js";
import { directoryWith, type Files } from "../../../support/task-directories.js";

const options = { cwd: "/", variables: {} };

/** The files of a Harbor task in a folder. */
function task(folder: string, toml = ""): Files {
  return {
    [`${folder}/task.toml`]: toml,
    [`${folder}/instruction.md`]: "Do it.",
    [`${folder}/environment/Dockerfile`]: "FROM debian:12",
    [`${folder}/tests/test.sh`]: "#!/bin/sh\n",
  };
}

async function names(paths: readonly string[], cwd = "/"): Promise<string[]> {
  return (await readTasks(paths, { ...options, cwd })).map(({ name }) => name);
}

async function faults(paths: readonly string[]): Promise<string[]> {
  const examined = await examineTasks(paths, options);
  return examined.faults.map(({ source, file, problem }) =>
    [source, file, problem].filter(Boolean).join(" "),
  );
}

describe("tasks", () => {
  it("are found in a directory, in directories below it, and where they are named", async () => {
    const root = await directoryWith({
      ...task("b"),
      ...task("set/a"),
      ...task("set/x/y"),
      "set/notes.md": "",
    });
    expect(await names([root])).toEqual(["b", "a", "y"]);
    expect(await names([join(root, "set/a")])).toEqual(["a"]);
    expect(await names(["set/x", "b"], root)).toEqual(["y", "b"]);
  });

  it("are not looked for deeper, in hidden directories, or behind links", async () => {
    const root = await directoryWith({
      ...task("a"),
      ...task("1/2/3/4"),
      ...task(".old/b"),
      ...task("node_modules/c"),
    });
    await symlink("a", join(root, "linked"));
    expect(await names([root])).toEqual(["a"]);
    expect(await names([join(root, "linked")])).toEqual(["linked"]);
  });

  it("are read once if the paths overlap", async () => {
    const root = await directoryWith({ ...task("a"), ...task("b") });
    expect(await names([join(root, "b"), root, `${root}/a/`])).toEqual(["b", "a"]);
  });

  it("that lie too deep are named, beside others and alone", async () => {
    const deep = task("one/two/three/four/deep");
    const root = await directoryWith({ ...deep, ...task("near") });
    const { tasks, faults: none, warnings } = await examineTasks([root], options);
    expect([tasks.map(({ name }) => name), none]).toEqual([["near"], []]);
    expect(warnings).toEqual([
      `${JSON.stringify(root)}: tasks more than 3 levels below are not read: "one/two/three/four/deep"`,
    ]);
    const alone = await directoryWith(deep);
    expect(await faults([alone])).toEqual([
      `${alone} has no tasks: tasks more than 3 levels below are not read: "one/two/three/four/deep"`,
    ]);
  });

  it("are named by their directories, also with spaces", async () => {
    const root = await directoryWith(task("my  first task"));
    expect(await names([root])).toEqual(["my-first-task"]);
  });

  it("of a task's own files are not further tasks", async () => {
    const root = await directoryWith({ ...task("a"), ...task("a/environment/inner") });
    expect(await names([root])).toEqual(["a"]);
  });

  it("have all their faults told together, and the others are read", async () => {
    const root = await directoryWith({
      ...task("bad", "[agent]\ntimeout_sec = 'x'"),
      ...task("good"),
      ...task("worse", "=\n"),
    });
    const examined = await examineTasks([root, join(root, "none")], options);
    expect(examined.tasks.map(({ name }) => name)).toEqual(["good"]);
    expect(examined.faults.map(({ source, field }) => [source, field])).toEqual([
      [join(root, "none"), null],
      [join(root, "bad"), "agent.timeout_sec"],
      [join(root, "worse"), null],
    ]);
    const error = await readTasks([root], options).catch((thrown: unknown) => thrown);
    expect(isBrigError(error, "task.invalid") && error.message.split("\n")).toEqual([
      "2 tasks cannot be used:",
      `  ${root}/bad/task.toml: agent.timeout_sec: is "x" and must be a number`,
      expect.stringContaining(`  ${root}/worse/task.toml: line 1, column 1: `),
    ]);
  });

  it("with the same name, or with the same folder of results, are refused with both sources", async () => {
    const same = await directoryWith({ ...task("one/a"), ...task("two/a") });
    expect(await faults([same])).toEqual([
      `${same}/two/a has the name "a", which ${JSON.stringify(`${same}/one/a`)} has too`,
    ]);
    const alike = await directoryWith({ ...task("one", "task.name = 'x/y'"), ...task("x__y") });
    expect(await faults([alike])).toHaveLength(1);
  });

  it("are missed in a path that has none, or does not exist, or is another file", async () => {
    const root = await directoryWith({ "a/readme.md": "" });
    expect(await faults([root, join(root, "b"), join(root, "a/readme.md")])).toEqual([
      `${root} has no tasks`,
      `${root}/b does not exist`,
      `${root}/a/readme.md is not a file of tasks`,
    ]);
  });

  it("are not read any more once the signal is aborted", async () => {
    const root = await directoryWith(task("a"));
    const signal = AbortSignal.abort(new Error("enough"));
    await expect(readTasks([root], { ...options, signal })).rejects.toThrow("enough");
  });

  it("show at most fifty faults, and how many more there are", async () => {
    const root = await directoryWith(
      Object.fromEntries(Array.from({ length: 60 }, (_, number) => [`t${number}/task.toml`, "="])),
    );
    const error = await readTasks([root], options).catch((thrown: unknown) => thrown);
    const lines = isBrigError(error) ? error.message.split("\n") : [];
    expect(lines).toHaveLength(52);
    expect(lines.at(-1)).toBe("  and 10 more faults");
  });
});
