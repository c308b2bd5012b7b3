import { cp, mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readRun } from "../../../../../src/batch/runs/batch/run-store.js";
import { mergeRuns } from "../../../../../src/batch/runs/merge/merge-runs.js";
import { temporaryFolder } from "../../../../support/batch-runs.js";
import { engineGone, playedSettings } from "../../../../support/played-attempts.js";
import { playedRun } from "../../../../support/played-runs.js";

async function twoRuns() {
  const root = await temporaryFolder();
  const [a, b, out] = [join(root, "a"), join(root, "b"), join(root, "new/out")];
  await playedRun(a, { first: 1, second: 0 }, { settings: { ...playedSettings, attempts: 2 } });
  await playedRun(b, { second: 1, third: null });
  const merge = (...folders: [string, ...string[]]) =>
    mergeRuns(folders, { out, signal: new AbortController().signal, now: () => new Date() });
  return { root, a, b, out, merge };
}

describe("runs of the same settings become one", () => {
  it("with their attempts numbered anew, and their files", async () => {
    const { a, b, out, merge } = await twoRuns();
    const merged = await merge(a, b);
    expect(merged).toMatchObject({ duplicates: 0, withoutFiles: 0, batch: { settings: { attempts: 3 } } });
    expect(
      (await readRun(out)).outcomes.map(({ task, attempt, reward }) => `${task}#${attempt} ${reward}`),
    ).toEqual(["first#1 1", "second#1 0", "first#2 1", "second#2 0", "second#3 1", "third#1 null"]);
    expect(await readFile(join(out, "attempts/second/3/agent/output.txt"), "utf8")).toBe("partial");
    const result = JSON.parse(await readFile(join(out, "attempts/second/3/result.json"), "utf8"));
    expect(result).toMatchObject({ task: "second", attempt: 3, reward: 1 });
    expect((await readRun(b)).outcomes).toHaveLength(2);
  });

  it("in which an attempt counts once, however often it was copied", async () => {
    const { root, a, b, out, merge } = await twoRuns();
    const copy = join(root, "copy");
    await cp(b, copy, { recursive: true });
    expect(await merge(b, a, copy, a)).toMatchObject({ duplicates: 6 });
    expect((await readRun(out)).outcomes).toHaveLength(6);
  });

  it("with the tries before an attempt", async () => {
    const { root, b, out, merge } = await twoRuns();
    const tried = join(root, "tried");
    const failures = [{ status: "infrastructure", reward: null, rewards: {}, failure: engineGone } as const];
    const { playedRunner } = await import("../../../../support/played-attempts.js");
    await playedRun(tried, { second: 1 }, { runner: playedRunner({ play: () => failures.pop() ?? {} }) });
    await merge(b, tried);
    const earlier = JSON.parse(await readFile(join(out, "attempts/second/2.try-1/result.json"), "utf8"));
    expect(earlier).toMatchObject({ status: "infrastructure", attempt: 2 });
  });

  it("without links, which could lead to any file of this machine", async () => {
    const { root, a, b, out, merge } = await twoRuns();
    await writeFile(join(root, "secret"), "secret");
    await symlink(join(root, "secret"), join(a, "attempts/first/1/link"));
    await cp(join(a, "attempts/first/2"), join(root, "elsewhere"), { recursive: true });
    await cp(a, join(root, "linked"), {
      recursive: true,
      filter: (path) => !path.includes("attempts/first"),
    });
    await symlink(root, join(root, "linked/attempts/first"));
    expect(await merge(a, b)).toMatchObject({ withoutFiles: 0 });
    expect(await readdir(join(out, "attempts/first/1"))).not.toContain("link");
    const other = join(root, "other");
    const options = { out: other, signal: new AbortController().signal, now: () => new Date() };
    expect(await mergeRuns([join(root, "linked")], options)).toMatchObject({ withoutFiles: 2 });
    expect(await readdir(join(other, "attempts/first/1"))).toEqual(["result.json"]);
  });
});

describe("runs are not merged", () => {
  it("over anything", async () => {
    const { a, b, out, merge } = await twoRuns();
    await mkdir(out, { recursive: true });
    await writeFile(join(out, "notes"), "mine");
    await expect(merge(a, b)).rejects.toMatchObject({ code: "usage.invalid" });
    expect(await readdir(join(out, ".."))).toEqual(["out"]);
    expect(await readFile(join(out, "notes"), "utf8")).toBe("mine");
  });

  it("if they have other settings or other tasks of the same name, which the message names", async () => {
    const { root, a, b, out, merge } = await twoRuns();
    const other = join(root, "other");
    await playedRun(other, { second: 1 }, { settings: { ...playedSettings, runtime: "runsc" } });
    const changed = JSON.parse(await readFile(join(b, "batch.json"), "utf8"));
    changed.tasks[0].checksum = "another";
    changed.tasks[0].parts.tests = "another";
    await writeFile(join(b, "batch.json"), JSON.stringify(changed));
    await expect(merge(a, other)).rejects.toThrow("runtime: runsc → nothing");
    await expect(merge(a, b)).rejects.toThrow("tasks.second.tests: another → t");
    await expect(readdir(out)).rejects.toThrow("ENOENT");
  });

  it("if a task is named like a path", async () => {
    const { a, merge } = await twoRuns();
    const batch = await readFile(join(a, "batch.json"), "utf8");
    await writeFile(join(a, "batch.json"), batch.replace('"name": "first"', '"name": "../../first"'));
    await expect(merge(a)).rejects.toMatchObject({ code: "usage.invalid" });
  });

  it("after an interruption, which leaves nothing behind", async () => {
    const { root, a, out } = await twoRuns();
    const signal = AbortSignal.abort(new Error("ctrl-C"));
    await expect(mergeRuns([a], { out, signal, now: () => new Date() })).rejects.toThrow("ctrl-C");
    expect(await readdir(join(root, "new"))).toEqual([]);
  });
});
