import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { planSandbox } from "../../../../src/sandbox/plan/plan-sandbox.js";
import { temporaryDirectory } from "../../../support/sandbox.js";
import { requestFor } from "../plan/plan-fixture.js";

let folder: string;
let repo: string;

beforeEach(async () => {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory[Symbol.asyncDispose]());
  folder = directory.path;
  repo = join(folder, "repo");
  await mkdir(repo);
  await mkdir(join(folder, "home"));
  await writeFile(join(folder, "program"), "");
});

describe("what brig itself mounts", () => {
  it("is read-only, apart from a home, which replaces the one in memory", async () => {
    const program = { source: join(folder, "program"), path: "/opt/agent/program" };
    const privateHome = join(folder, "home");
    const plan = await planSandbox({ ...(await requestFor(repo)), hostMounts: [program], privateHome });
    expect(plan.mounts.filter(({ kind }) => kind === "private")).toEqual([
      {
        kind: "private",
        path: "/opt/agent/program",
        access: "ro",
        identity: expect.objectContaining({ ino: expect.stringMatching(/^\d+$/) }),
        source: { kind: "host", path: program.source },
      },
      expect.objectContaining({
        path: "/home/brig",
        access: "rw",
        source: { kind: "host", path: privateHome },
      }),
    ]);
    expect(plan.tmpfs.map(({ path }) => path)).toEqual(["/tmp", "/run"]);
    expect((await planSandbox(await requestFor(repo))).tmpfs.map(({ path }) => path)).toContain("/home/brig");
  });

  it("does not hide or show anything of the workspace", async () => {
    for (const path of [repo, join(repo, "below"), folder]) {
      const hostMounts = [{ source: join(folder, "program"), path }];
      await expect(planSandbox({ ...(await requestFor(repo)), hostMounts })).rejects.toMatchObject({
        code: "workspace.invalid",
        message: expect.stringContaining("brig mounts"),
      });
    }
  });

  it("has to be there", async () => {
    const hostMounts = [{ source: join(folder, "gone"), path: "/opt/agent" }];
    await expect(planSandbox({ ...(await requestFor(repo)), hostMounts })).rejects.toMatchObject({
      code: "workspace.invalid",
      message: expect.stringContaining("ENOENT"),
    });
  });
});
