import { describe, expect, it } from "vitest";
import { type ReadSelectedOptions, readSelected } from "../../../../../src/batch/runs/batch/select-tasks.js";
import { directoryWith, type Files } from "../../../../support/task-directories.js";

function task(name: string, toml = "schema_version = '1.4'", dockerfile = "FROM debian:12\n"): Files {
  return {
    [`${name}/task.toml`]: `${toml}\n`,
    [`${name}/instruction.md`]: "do it",
    [`${name}/environment/Dockerfile`]: dockerfile,
    [`${name}/tests/test.sh`]: "#!/bin/sh\n",
  };
}

/** One that can be used, and others that cannot for all kinds of reasons. */
const files: Files = {
  ...task("good"),
  ...task("gpus", "environment = { gpus = 1 }"),
  ...task("torn", "="),
  ...task("buildkit", undefined, "FROM debian:12\nRUN <<EOF\ntrue\nEOF\n"),
  ...task("mixed", "environment = { network_mode = 'public' }\nagent = { network_mode = 'no-network' }"),
  "rows.jsonl":
    '{"prompt": "p", "check": "true", "name": "row"}\n{"prompt": 3, "check": "true", "name": "bad-row"}\n{"pro\n',
};

async function selected(selection: ReadSelectedOptions["selection"], skipsUnusable = false) {
  const root = await directoryWith(files);
  const paths = [root, `${root}/rows.jsonl`];
  const read = await readSelected(paths, { cwd: "/", variables: {}, selection, skipsUnusable });
  return { ...read, names: read.tasks.map(({ name }) => name), root };
}

describe("the tasks that are chosen", () => {
  it.each([
    [{ include: ["good"] }, ["good"]],
    [{ include: ["row", "go*"] }, ["good", "row"]],
  ])("by %j are read whatever is wrong with others", async (selection, names) => {
    expect(await selected(selection)).toMatchObject({ names, skipped: [], warnings: [] });
  });

  it("are refused together for what is wrong with them, and not for what is wrong with those left out", async () => {
    const chosen = selected({ include: ["g*", "bad-row"] });
    await expect(chosen).rejects.toThrow(/2 tasks cannot be used:[\s\S]*gpus[\s\S]*rows.jsonl:2: /);
    await expect(chosen).rejects.not.toThrow("torn");
    await expect(selected({ exclude: ["gpus", "torn", "bad-row"] })).rejects.toThrow("rows.jsonl:3");
  });

  it("need a name that there is, usable or not", async () => {
    await expect(selected({ include: ["nosuch"] })).rejects.toThrow('no task is named "nosuch"');
    await expect(selected({ include: ["good"], exclude: ["torn"] })).resolves.toMatchObject({
      names: ["good"],
    });
  });

  it("are those that can be used, if that is asked for, and the others are named with the reason", async () => {
    const { names, skipped, root } = await selected({ exclude: ["torn"] }, true);
    expect(names).toEqual(["buildkit", "good", "row"]);
    expect(skipped).toEqual([
      expect.stringContaining(`${root}/gpus/task.toml: environment.gpus: is 1`),
      expect.stringContaining(`${root}/rows.jsonl:3: `),
      expect.stringContaining(`${root}/rows.jsonl:2: prompt`),
      expect.stringContaining("the task mixed cannot be run"),
    ]);
    await expect(selected({ include: ["gpus"] }, true)).rejects.toThrow("no task is left");
  });

  it("do not have the same name", async () => {
    const root = await directoryWith({ ...task("a/x"), ...task("b/x"), ...task("y") });
    const options = { cwd: "/", variables: {} };
    await expect(readSelected([root], { ...options, selection: {} })).rejects.toThrow("has too");
    const { tasks } = await readSelected([root], { ...options, selection: { include: ["y"] } });
    expect(tasks).toHaveLength(1);
  });
});
