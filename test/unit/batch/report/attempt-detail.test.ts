import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { attemptDetail, liveLimits } from "../../../../src/batch/report/view/attempt-detail.js";
import { RunFiles } from "../../../../src/batch/report/view/run-file.js";
import { temporaryDirectory } from "../../../support/sandbox.js";
import {
  attemptResult,
  exampleFileNames,
  exampleFiles,
  mixedRun,
  writeRun,
} from "../../../support/view/run-fixture.js";

const noFiles = attemptResult({ task: "a" }).files;

describe("what was found before the tests of an attempt", () => {
  it("is what was neutralised, without what was only noticed", async () => {
    await using folder = await temporaryDirectory();
    const plain = attemptResult({ task: "a" });
    const [step] = plain.steps;
    const confirmation = {
      outcome: "outside" as const,
      paths: ["/srv/\u001b[2Jx"],
      isSmallest: true,
      gradings: 5,
      message: null,
    };
    const findings = ['"/app/out.txt" does not exist', '"/etc/curlrc" was added, and is removed'];
    const verification = { ...step!.verification!, findings, notes: findings.slice(0, 1), confirmation };
    const result = { ...plain, steps: [{ ...step!, verification }] };
    const [shown] = attemptDetail(folder.path, result, liveLimits).steps;
    expect(shown?.verification?.findings).toEqual([findings[1]]);
    expect(shown?.verification?.notes).toEqual([findings[0]]);
    expect(shown?.verification?.confirmation?.paths[0]).not.toContain("\u001b");
  });
});

describe("the files of an attempt", () => {
  it("are shown with what was asked and answered", async () => {
    await using folder = await temporaryDirectory();
    const run = mixedRun(1);
    await writeRun(folder.path, run);
    const [attempt] = run.attempts;
    const detail = attemptDetail(folder.path, attempt!.result, liveLimits);
    expect(detail.testOutput).toEqual({ head: "2 passed\n", omittedBytes: 0, tail: "" });
    expect(detail.diff?.head).toContain("+    return list(open(path))");
    expect(detail.agentOutput).toBeNull();
    expect(detail.trajectory).toMatchObject({
      kind: "steps",
      omittedSteps: 0,
      steps: [
        { number: 1, source: "user", calls: [] },
        {
          number: 2,
          source: "agent",
          calls: [
            {
              tool: "shell_command",
              arguments: { head: "cat sort.py" },
              output: { head: "def read(path):\n    return set(open(path))\n" },
              facts: [
                { name: "exit code", value: "0" },
                { name: "duration ms", value: "14" },
              ],
            },
          ],
        },
        { number: 3, source: "agent" },
      ],
    });
  });

  it.each([
    ["a path upwards", "../../../secret.txt"],
    ["an absolute path", "/etc/passwd"],
    ["a path with an empty part", "a//b"],
    ["a link to a file", "link.txt"],
    ["a file below a link", "folder-link/secret.txt"],
    ["a directory", "folder"],
    ["nothing", "missing.txt"],
  ])("are not read through %s", async (_title, path) => {
    await using folder = await temporaryDirectory();
    const run = join(folder.path, "run");
    const attempt = join(run, "attempts/a/1");
    await mkdir(join(attempt, "folder"), { recursive: true });
    await mkdir(join(folder.path, "outside"));
    await writeFile(join(folder.path, "outside/secret.txt"), "secret");
    await writeFile(join(run, "secret.txt"), "secret");
    await symlink(join(folder.path, "outside/secret.txt"), join(attempt, "link.txt"));
    await symlink(join(folder.path, "outside"), join(attempt, "folder-link"));
    const result = attemptResult({ task: "a", files: { ...noFiles, testOutput: path, trajectory: path } });
    const detail = attemptDetail(run, result, liveLimits);
    expect(detail.testOutput).toBeNull();
    expect(detail.trajectory).toEqual({ kind: "unreadable", reason: "cannot be read" });
    // Without what refuses them, the test's own file is read.
    expect(new RunFiles(run).text(["secret.txt"], { maxBytes: 100 })).toMatchObject({
      head: "secret",
    });
  });

  it.each(["..", "."])("are not read for a task with the name %s", async (task) => {
    await using folder = await temporaryDirectory();
    await mkdir(join(folder.path, "attempts"));
    await mkdir(join(folder.path, "1"));
    await writeFile(join(folder.path, "1/test.txt"), "secret");
    const result = attemptResult({ task, files: { ...noFiles, testOutput: "test.txt" } });
    expect(attemptDetail(folder.path, result, liveLimits).testOutput).toBeNull();
  });

  it("are cut in the middle, between characters, and say by how much", async () => {
    await using folder = await temporaryDirectory();
    await writeFile(join(folder.path, "long.txt"), `begin ${"é".repeat(50_000)} end`);
    const text = new RunFiles(folder.path).text(["long.txt"], { maxBytes: 1001 });
    expect(text?.head).toMatch(/^begin é+$/);
    expect(text?.tail).toMatch(/^é+ end$/);
    expect(text?.omittedBytes).toBe(100_010 - 1000);
  });

  it("lose control sequences and show hidden characters", async () => {
    await using folder = await temporaryDirectory();
    const hostile = "a\u001b[2Jb\u001b]0;title\u0007c\u202egnp.exe\u2066";
    const task = "t";
    await writeRun(folder.path, {
      attempts: [
        {
          result: attemptResult({ task, files: exampleFileNames }),
          files: exampleFiles(task, { output: hostile }),
        },
      ],
    });
    const result = attemptResult({
      task,
      files: exampleFileNames,
      imageId: hostile,
      taskChecksum: hostile,
      tries: [
        {
          startedAt: "2026-01-02T09:00:00Z",
          endedAt: "2026-01-02T09:00:01Z",
          failure: { class: "disk-full", message: hostile, evidence: [hostile] },
        },
      ],
    });
    const detail = attemptDetail(folder.path, result, liveLimits);
    const everything = JSON.stringify(detail);
    expect(everything).not.toMatch(/\\u001b|\\u0007|[\u202a-\u202e\u2066-\u2069]/);
    expect(detail.testOutput?.head).toMatch(/^abc/);
    expect(detail.tries[0]?.failure.evidence[0]).toMatch(/^abc/);
  });
});

describe("a trajectory", () => {
  it.each([
    ["is no JSON", "{", "is not an ATIF document"],
    ["has no steps", "{}", "is not an ATIF document"],
    ["is nested too deeply", `{"steps":[${"[".repeat(5000)}${"]".repeat(5000)}]}`, "is not an ATIF document"],
    ["has a step that is none", '{"steps":[{"source":"somebody"}]}', "is not valid ATIF at step 1"],
  ])("that %s is named, not shown", async (_title, json, reason) => {
    const trajectory = await shownWith(json);
    expect(trajectory).toEqual({ kind: "unreadable", reason });
  });

  it("that is too long loses its last steps, and says how many", async () => {
    const step = { source: "agent", message: "x".repeat(60_000) };
    const trajectory = await shownWith(JSON.stringify({ steps: Array.from({ length: 100 }, () => step) }));
    expect(trajectory.kind).toBe("steps");
    if (trajectory.kind !== "steps") return;
    expect(trajectory.steps.length + trajectory.omittedSteps).toBe(100);
    expect(trajectory.steps.length).toBe(Math.ceil(liveLimits.trajectory.maxTotalChars / 60_000));
  });

  async function shownWith(json: string) {
    await using folder = await temporaryDirectory();
    const result = attemptResult({ task: "t", files: { ...noFiles, trajectory: "t.json" } });
    await writeRun(folder.path, { attempts: [{ result, files: { "t.json": json } }] });
    return attemptDetail(folder.path, result, liveLimits).trajectory;
  }
});
