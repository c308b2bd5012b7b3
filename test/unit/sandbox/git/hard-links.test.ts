import { linkSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { lstatOrNull, toBytePath } from "../../../../src/sandbox/git/byte-paths.js";
import { refuseHardLinks } from "../../../../src/sandbox/git/git-paths.js";
import { failure } from "../played-sandbox.js";

let folder = "";
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "brig-links-")));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
});

const at = (name: string) => `${toBytePath(folder)}/${name}`;

function make(name: string, ...others: string[]): void {
  mkdirSync(dirname(join(folder, name)), { recursive: true });
  writeFileSync(join(folder, name), "x");
  for (const other of others) {
    mkdirSync(dirname(join(folder, other)), { recursive: true });
    linkSync(join(folder, name), join(folder, other));
  }
}

/** A protected file, as it is found in a git directory. */
function protectedFile(name: string) {
  const stat = lstatOrNull(at(name));
  return { path: at(name), file: `${stat?.dev}:${stat?.ino}`, linkCount: Number(stat?.nlink) };
}

/** Null if it is not refused. Nothing below `git` can be written to, and by default all else can. */
async function refusal(
  names: readonly string[],
  { writable = ["work"], isWritable = (path: string) => !path.startsWith(at("git")) } = {},
) {
  const outcome = await failure(refuseHardLinks(names.map(protectedFile), writable.map(at), isWritable));
  return outcome === null ? null : (outcome as Error);
}

describe("a protected file", () => {
  it("with another name in a writable directory is refused, with both names and what to do", async () => {
    make("git/config", "work/deep/down/same");
    expect(await refusal(["git/config"])).toMatchObject({
      code: "workspace.invalid",
      message: `"${folder}/git/config" cannot be kept read-only: "${folder}/work/deep/down/same" is the same file by another name (a hard link)`,
      hint: expect.stringContaining("cp -p FILE FILE.new"),
    });
  });

  it("is refused whichever of the writable directories has the name", async () => {
    make("git/config", "two/same");
    mkdirSync(join(folder, "one"));
    expect(await refusal(["git/config"], { writable: ["one", "two"] })).toMatchObject({
      code: "workspace.invalid",
    });
    expect(await refusal(["git/config"], { writable: ["two", "one"] })).toMatchObject({
      code: "workspace.invalid",
    });
    expect(await refusal(["git/config"], { writable: ["one"] })).toBeNull();
  });

  it("whose names are all protected is of no matter, and nothing is searched for it", async () => {
    make("git/config", "git/again");
    const isWritable = vi.fn(() => true);
    expect(await refusal(["git/config", "git/again"], { isWritable })).toBeNull();
    expect(await refusal([], { isWritable })).toBeNull();
    expect(isWritable).not.toHaveBeenCalled();
  });

  it("of which one name was found twice has another one all the same", async () => {
    make("git/config", "work/same");
    expect(await refusal(["git/config", "git/config"])).toMatchObject({ code: "workspace.invalid" });
  });

  it("of several is found, with the others protected under all their names", async () => {
    make("git/one", "git/two");
    make("git/three", "work/same");
    expect((await refusal(["git/one", "git/two", "git/three"]))?.message).toContain("git/three");
  });

  it("may have its other name where nothing can be written", async () => {
    make("git/config", "work/closed/same");
    make("git/other", "work/same");
    const closed = (path: string) => path !== at("work/closed");
    expect(await refusal(["git/config"], { isWritable: closed })).toBeNull();
    const readOnly = (path: string) => path !== at("work/same");
    expect(await refusal(["git/other"], { isWritable: readOnly })).toBeNull();
    expect(await refusal(["git/other"])).toMatchObject({ code: "workspace.invalid" });
  });

  it("is not a file that is hard linked to something else, or a link, or one of one name", async () => {
    make("git/config", "elsewhere/same");
    make("work/a", "work/b");
    make("work/c");
    symlinkSync("../git/config", join(folder, "work/link"));
    symlinkSync("../elsewhere", join(folder, "work/directory"));
    expect(await refusal(["git/config"])).toBeNull();
  });

  it("is looked for in the other directories where one cannot be listed", async () => {
    make("git/config", "work/same");
    writeFileSync(join(folder, "file"), "");
    expect(await refusal(["git/config"], { writable: ["none", "file", "work"] })).toMatchObject({
      code: "workspace.invalid",
    });
    expect(await refusal(["git/config"], { writable: ["work", "none", "file"] })).toMatchObject({
      code: "workspace.invalid",
    });
    expect(await refusal(["git/config"], { writable: ["none", "file"] })).toBeNull();
  });

  it("is looked for in slices of ten milliseconds, between which other work is done", async () => {
    make("git/config", "elsewhere/same");
    mkdirSync(join(folder, "work/a/b/c"), { recursive: true });
    vi.useFakeTimers({ toFake: ["performance"] });
    onTestFinished(() => void vi.useRealTimers());
    let turns = 0;
    let isOver = false;
    const count = () => {
      if (isOver) return;
      turns++;
      setImmediate(count);
    };
    setImmediate(count);
    const turnsAt: number[] = [];
    const isWritable = () => {
      vi.advanceTimersByTime(turnsAt.length === 1 ? 0 : 10);
      turnsAt.push(turns);
      return true;
    };
    expect(await refusal(["git/config"], { isWritable })).toBeNull();
    isOver = true;
    expect(turnsAt).toEqual([0, 1, 1, 2]);
  });

  it("is found by a name that is not UTF-8", async () => {
    make("git/config");
    mkdirSync(join(folder, "work"));
    linkSync(join(folder, "git/config"), Buffer.from(`${at("work/")}\xff\n`, "latin1"));
    expect((await refusal(["git/config"]))?.message).toContain("work/\ufffd\\n");
  });
});
