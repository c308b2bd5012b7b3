import { mkdir, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { findConfigPaths, planProtection, type Root } from "../../../../src/sandbox/plan/protected-paths.js";
import { temporaryDirectory } from "../../../support/sandbox.js";

let folder: string;
/** A writable directory. */
let work: string;

beforeEach(async () => {
  const made = await temporaryDirectory();
  onTestFinished(() => made[Symbol.asyncDispose]());
  folder = made.path;
  work = join(folder, "work");
  await mkdir(join(work, "state"), { recursive: true });
});

const places = async (directory: string) => findConfigPaths([directory], [work]);

async function refusal(directory: string): Promise<string> {
  const error: unknown = await places(directory).catch((reason: unknown) => reason);
  expect(error).toMatchObject({ code: "workspace.invalid", hint: expect.stringContaining("BRIG_HOME") });
  return (error as Error).message;
}

function root(path: string, access: Root["access"] = "rw"): Root {
  return { kind: "workspace", access, directory: { path, identity: { dev: "1", ino: "2" } } };
}

describe("brig's own directory", () => {
  it("is found below a writable directory, with its config.toml, there or not", async () => {
    for (const name of ["state", "state/deeper", "absent"])
      expect(await places(join(work, name))).toEqual([join(work, name), join(work, name, "config.toml")]);
  });

  it("is nothing to hold elsewhere, or above", async () => {
    for (const path of [join(folder, "other"), join(folder, "work-2"), folder, "/"])
      expect(await places(path)).toEqual([]);
  });

  it("is found where links from outside lead to it", async () => {
    await symlink("work", join(folder, "alias"));
    await symlink(join(folder, "alias", "state"), join(folder, "home"));
    for (const path of [join(folder, "alias/state"), join(folder, "home"), join(folder, "x/../home/.")])
      expect(await places(path)).toEqual([join(work, "state"), join(work, "state/config.toml")]);
  });

  it("is refused behind a link that a command could replace, wherever that leads", async () => {
    await mkdir(join(folder, "outside"));
    await symlink("../outside", join(work, "out"));
    await symlink(join(work, "out"), join(folder, "in-and-out"));
    await symlink("state", join(work, "loop"));
    for (const path of [join(work, "out"), join(work, "out/deeper"), join(folder, "in-and-out")])
      expect(await refusal(path)).toContain(`"${work}/out", on the way to`);
    expect(await refusal(join(work, "loop"))).toContain(`"${work}/loop", on the way to`);
  });

  it("is refused when it is the writable directory itself", async () => {
    expect(await refusal(work)).toContain(`commands may not write to "${work}"`);
  });

  it("ends at a loop of links", async () => {
    await symlink("b", join(folder, "a"));
    await symlink("a", join(folder, "b"));
    expect(await places(join(folder, "a"))).toEqual([]);
  });
});

describe("a config.toml that is a link", () => {
  it("into a writable directory is found there, and alone", async () => {
    await mkdir(join(folder, "home"));
    await writeFile(join(work, "brig.toml"), "");
    await symlink("../work/brig.toml", join(folder, "home/config.toml"));
    expect(await places(join(folder, "home"))).toEqual([join(work, "brig.toml")]);
  });
});

describe("the plan of the mounts", () => {
  const plan = async (names: string[], own: string[]) => {
    const { mounts } = await planProtection([root(work)], names, { configDirectories: own });
    return mounts.map(({ kind, access, path }) => `${kind} ${access} ${path.slice(folder.length + 1)}`);
  };

  it("holds the directory and pins the way to it", async () => {
    await mkdir(join(work, "state/brig"));
    expect(await plan([], [join(work, "state/brig")])).toEqual([
      "workspace rw work",
      "pin rw work/state",
      "protected ro work/state/brig",
    ]);
  });

  it("holds nothing twice that a protected name holds, absent or not", async () => {
    expect(await plan([".brig"], [join(work, ".brig")])).toEqual([
      "workspace rw work",
      "protected ro work/.brig",
    ]);
    await mkdir(join(work, ".brig/brig"), { recursive: true });
    expect(await plan([".brig"], [join(work, ".brig/brig")])).toEqual([
      "workspace rw work",
      "protected ro work/.brig",
    ]);
  });

  it("refuses one that a command could create", async () => {
    await rm(join(work, "state"), { recursive: true });
    await expect(plan([], [join(work, "state")])).rejects.toMatchObject({ code: "workspace.invalid" });
  });

  it("leaves a workspace alone that cannot be written", async () => {
    const { mounts } = await planProtection([root(work, "ro")], [], {
      configDirectories: [join(work, "state"), work],
    });
    expect(mounts).toHaveLength(1);
  });
});
