import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { noteApply, unfinishedApplies } from "../../../../../src/sandbox/changes/apply-records.js";
import { recordOfKilled } from "./killed-apply.js";

function newHome(): string {
  const home = mkdtempSync(join(tmpdir(), "brig-applies-"));
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
  return home;
}

const names = (home: string) => readdirSync(join(home, "applies"));
const stage = { name: ".brig-stage-0123456789abcdef", key: Buffer.alloc(32, 0xcd) };

describe("the note of an apply", () => {
  it("has what undoes it, and only its owner may read it", async () => {
    const home = newHome();
    const forget = await noteApply(home, { workspace: "/repo", stage });
    const [name = ""] = names(home);
    expect(names(home)).toEqual([expect.stringMatching(/^[0-9a-f-]{36}\.json$/)]);
    const file = join(home, "applies", name);
    expect(JSON.parse(readFileSync(file, "utf8"))).toMatchObject({
      ...{ workspace: "/repo", stage: stage.name, key: "cd".repeat(32) },
      owner: { pid: process.pid, host: expect.any(String) },
    });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(statSync(join(home, "applies")).mode & 0o777).toBe(0o700);
    forget();
    expect(names(home)).toEqual([]);
    forget();
  });

  it("is of an apply that runs, as long as its process does", async () => {
    const home = newHome();
    await noteApply(home, { workspace: "/repo", stage });
    expect(await unfinishedApplies(home)).toEqual([]);
    expect(names(home)).toHaveLength(1);
  });

  it("is of an unfinished one when its process is gone, until that is undone", async () => {
    const home = newHome();
    await recordOfKilled(home, { key: "ab".repeat(32) });
    await noteApply(home, { workspace: "/other", stage });
    const found = await unfinishedApplies(home);
    expect(found).toMatchObject([
      { workspace: "/repo", stage: { name: ".brig-stage-0f", key: Buffer.alloc(32, 0xab) } },
    ]);
    expect(names(home)).toHaveLength(2);
    for (const { forget } of found) forget();
    expect(names(home)).toHaveLength(1);
    expect(await unfinishedApplies(home)).toEqual([]);
    found[0]?.forget();
  });

  it("of nothing is none", async () => {
    expect(await unfinishedApplies(newHome())).toEqual([]);
  });

  it.each([
    ["has a relative workspace", { workspace: "repo" }],
    ["is of another stage", { stage: ".brig-stage-x" }],
    ["has a stage that leads elsewhere", { stage: "../.brig-stage-0" }],
    ["has a short key", { key: "00".repeat(31) }],
    ["has a key that is none", { key: "zz".repeat(32) }],
    ["has no owner", { owner: { pid: 0, startedAt: null, bootId: null, host: "x" } }],
    ["has more than it may", { more: 1 }],
  ])("that %s is left alone", async (_name, others) => {
    const home = newHome();
    await recordOfKilled(home, others);
    expect(await unfinishedApplies(home)).toEqual([]);
    expect(names(home)).toHaveLength(1);
  });

  it("that is not whole, too large or no file is left alone", async () => {
    const home = newHome();
    const name = await recordOfKilled(home);
    const file = join(home, "applies", name);
    const whole = readFileSync(file, "utf8");
    const found = async (text: string) => {
      writeFileSync(file, text);
      return (await unfinishedApplies(home)).length;
    };
    expect(await found(whole.padEnd(64 * 1024))).toBe(1);
    expect(await found(whole.padEnd(64 * 1024 + 1))).toBe(0);
    expect(await found(whole.slice(0, -1))).toBe(0);
    expect(await found("")).toBe(0);
    writeFileSync(`${file}.new`, whole);
    rmSync(file);
    expect(await unfinishedApplies(home)).toEqual([]);
  });

  it("cannot be read where something else has its place", async () => {
    const home = newHome();
    writeFileSync(join(home, "applies"), "");
    await expect(unfinishedApplies(home)).rejects.toMatchObject({ code: "ENOTDIR" });
    await expect(noteApply(home, { workspace: "/repo", stage })).rejects.toMatchObject({ code: "EEXIST" });
  });
});
