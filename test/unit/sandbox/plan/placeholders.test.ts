import { chmod, lstat, mkdir, mkdtemp, readdir, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ContainerSummary } from "../../../../src/sandbox/docker/engine-types.js";
import {
  placeholdersInUse,
  preparePlaceholders,
  readPlaceholdersLabel,
  removeAbandonedPlaceholders,
} from "../../../../src/sandbox/plan/placeholders.js";

let folder: string;
const at = (name: string) => join(folder, name);

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "brig-placeholders-"));
});
afterEach(async () => await rm(folder, { recursive: true }));

describe("placeholders", () => {
  it("are empty directories that nobody may write, and go without a trace", async () => {
    const placeholders = await preparePlaceholders([at(".git"), at(".codex")]);
    expect(await readdir(folder)).toEqual([".codex", ".git"]);
    expect((await stat(at(".git"))).mode & 0o222).toBe(0);
    expect(placeholders.made.map(({ path }) => path)).toEqual([at(".git"), at(".codex")]);
    await placeholders.remove();
    expect(await readdir(folder)).toEqual([]);
    await placeholders.remove();
  });

  it("leave a directory that appeared meanwhile to its maker", async () => {
    await mkdir(at(".git"));
    const placeholders = await preparePlaceholders([at(".git")]);
    expect(placeholders.made).toEqual([]);
    await placeholders.remove();
    expect(await readdir(folder)).toEqual([".git"]);
  });

  it("take over what a killed session left", async () => {
    await preparePlaceholders([at(".git")]);
    const second = await preparePlaceholders([at(".git")]);
    expect(second.made).toEqual([{ path: at(".git"), ino: expect.stringMatching(/^\d+$/) }]);
    await second.remove();
    expect(await readdir(folder)).toEqual([]);
  });

  it("stay where something was put into them, or where they were replaced", async () => {
    const placeholders = await preparePlaceholders([at("filled"), at("replaced"), at("linked")]);
    await chmod(at("filled"), 0o755);
    await writeFile(at("filled/file"), "");
    await rm(at("replaced"), { recursive: true });
    await writeFile(at("replaced"), "mine");
    await rm(at("linked"), { recursive: true });
    await symlink("filled", at("linked"));
    await placeholders.remove();
    expect(await readdir(folder)).toEqual(["filled", "linked", "replaced"]);
  });

  it("stay while another session has them mounted", async () => {
    const placeholders = await preparePlaceholders([at(".git"), at(".codex")]);
    await placeholders.remove(new Set([at(".git")]));
    expect(await readdir(folder)).toEqual([".git"]);
  });

  it("are made all or none", async () => {
    await writeFile(at("file"), "");
    await expect(preparePlaceholders([at(".git"), at("file")])).rejects.toMatchObject({
      code: "policy.not-enforced",
      message: expect.stringContaining("EEXIST"),
    });
    await expect(preparePlaceholders([at(".git"), at("missing/.git")])).rejects.toMatchObject({
      message: expect.stringContaining("ENOENT"),
    });
    expect(await readdir(folder)).toEqual(["file"]);
  });

  it("that are files are empty and readable, taken over, and go without a trace", async () => {
    const [path, other] = [at("gitconfig"), at("other")];
    await preparePlaceholders([path], { files: [path] });
    expect(await stat(path)).toMatchObject({ size: 0, mode: 0o100444 });
    const second = await preparePlaceholders([path, other], { files: [path, other] });
    expect(second.made.map((one) => one.path)).toEqual([path, other]);
    await chmod(other, 0o644);
    await writeFile(other, "x");
    await second.remove();
    expect(await readdir(folder)).toEqual(["other"]);
  });

  it("that are files leave what appeared meanwhile to its maker, an empty file too", async () => {
    const path = at("gitconfig");
    await writeFile(path, "", { mode: 0o444 });
    expect((await preparePlaceholders([path], { files: [path] })).made).toEqual([]);
    await rm(path);
    await mkdir(path);
    await expect(preparePlaceholders([path], { files: [path] })).rejects.toMatchObject({
      code: "policy.not-enforced",
    });
  });

  it("are not made through a link", async () => {
    await symlink(at("target"), at(".git"));
    await expect(preparePlaceholders([at(".git")])).rejects.toMatchObject({ code: "policy.not-enforced" });
    expect(await readdir(folder)).toEqual([".git"]);
  });
});

it("a sweep removes only what looks exactly like a placeholder", async () => {
  await mkdir(at("left"), { mode: 0o555 });
  await mkdir(at("writable"));
  await mkdir(at("full"));
  await writeFile(at("full/x"), "");
  await chmod(at("full"), 0o555);
  await writeFile(at("file"), "", { mode: 0o444 });
  await symlink("left", at("link"));
  const names = ["left", "writable", "full", "file", "link", "missing"];
  await mkdir(at("another"), { mode: 0o555 });
  const { ino } = await lstat(at("left"), { bigint: true });
  const places = names.map((name) => ({ path: at(name), ino: name === "left" ? String(ino) : null }));
  const other = { path: at("another"), ino: String(ino) };
  expect(await removeAbandonedPlaceholders([...places, other])).toEqual([at("left")]);
  expect(await removeAbandonedPlaceholders([{ ...other, ino: null }])).toEqual([at("another")]);
  expect(await readdir(folder)).toEqual(["file", "full", "link", "writable"]);
  await chmod(at("full"), 0o755);
});

it.each([
  ["nothing", {}, []],
  ["a list", { "brig.placeholders": '["/repo/.git"]' }, ["/repo/.git"]],
  ["no JSON", { "brig.placeholders": "[" }, []],
  ["no list", { "brig.placeholders": '{"0":"/a"}' }, []],
  ["other things", { "brig.placeholders": '[1,null,"relative","/a"]' }, ["/a"]],
])("the label with %s is read", (_, labels, paths) => {
  expect(readPlaceholdersLabel(labels)).toEqual(paths);
});

it("a sweep removes the empty file of a killed session, and no other empty file", async () => {
  const [left, own] = [at("left"), at("own")];
  await preparePlaceholders([left], { files: [left] });
  await writeFile(own, "", { mode: 0o444 });
  const places = [left, own].map((path) => ({ path, ino: null }));
  expect(await removeAbandonedPlaceholders(places)).toEqual([left]);
  expect(await readdir(folder)).toEqual(["own"]);
});

it("placeholders in use are those of other sessions' containers", async () => {
  const container = (session: string, paths: string[]) =>
    ({
      labels: { "brig.session": session, "brig.placeholders": JSON.stringify(paths) },
    }) as unknown as ContainerSummary;
  const engine = {
    listContainers: async () => [container("mine", ["/a"]), container("theirs", ["/b", "/c"])],
  };
  expect(await placeholdersInUse(engine, "mine")).toEqual({
    sessions: new Set(["theirs"]),
    paths: new Set(["/b", "/c"]),
  });
});
