import { execFileSync } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { workspaceDiff } from "../../../../src/cli/conversation/workspace-diff.js";
import { MemorySandbox } from "../../../support/memory-sandbox.js";
import { temporaryDirectory } from "../../../support/sandbox.js";

let cwd: string;

beforeEach(async () => {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory[Symbol.asyncDispose]());
  cwd = directory.path;
});

const diff = () => workspaceDiff(new MemorySandbox(), { cwd, signal: AbortSignal.timeout(20_000) });

function git(...args: string[]): void {
  const identity = ["-c", "user.name=Test", "-c", "user.email=test@localhost"];
  execFileSync("git", [...identity, ...args], { cwd, stdio: "ignore" });
}

async function repository(): Promise<void> {
  git("init", "--quiet");
  await writeFile(join(cwd, "a.txt"), "one\ntwo\n");
  git("add", ".");
  git("commit", "--quiet", "-m", "first");
}

async function texts(): Promise<string[]> {
  const found = await diff();
  return found.kind === "changes" ? found.lines.map(({ text, tone }) => `${tone}: ${text}`) : [found.kind];
}

describe("the changes of a workspace", () => {
  it("are its tracked files' and its new ones', but no ignored ones'", async () => {
    await repository();
    await writeFile(join(cwd, "a.txt"), "one\nTWO\n");
    await writeFile(join(cwd, ".gitignore"), "dist\n");
    await mkdir(join(cwd, "dist"));
    await writeFile(join(cwd, "dist/out"), "x\n");
    const lines = await texts();
    expect(lines).toEqual(
      expect.arrayContaining([
        "quiet: diff --git a/a.txt b/a.txt",
        "removed: -two",
        "added: +TWO",
        "quiet: diff --git a/.gitignore b/.gitignore",
        "added: +dist",
      ]),
    );
    expect(lines.join("\n")).not.toContain("dist/out");
  });

  it("may be none, or the first ones before any commit", async () => {
    await repository();
    expect(await texts()).toEqual(["none"]);
    git("update-ref", "-d", "HEAD");
    expect(await texts()).toContain("added: +one");
  });

  it("cannot be told without a repository", async () => {
    expect(await diff()).toMatchObject({
      kind: "unavailable",
      reason: expect.stringContaining("git repository"),
    });
  });

  it("run nothing that the repository's configuration names, and show no control characters", async () => {
    await repository();
    git("config", "diff.external", "touch ran-external;");
    git("config", "core.fsmonitor", "touch ran-fsmonitor;");
    git("config", "core.pager", "touch ran-pager;");
    await writeFile(join(cwd, "a.txt"), "\x1b]52;c;eA==\x07\x1b[2Jred\u202e\n");
    const lines = await texts();
    expect(lines.join("\n")).not.toMatch(/(?!\n)[\p{Cc}\p{Bidi_Control}]|ran-/u);
    expect(lines.join("\n")).toContain("red<U+202E>");
  });

  it("of a size beyond reading are cut, and say so", async () => {
    await repository();
    await writeFile(join(cwd, "a.txt"), "a line of some length\n".repeat(100_000));
    const found = await diff();
    expect(found).toMatchObject({ kind: "changes", isCut: true });
  });
});
