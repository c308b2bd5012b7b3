import { chmod, chown, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { planSandbox } from "../../../../src/sandbox/plan/plan-sandbox.js";
import { loadChosenPolicy } from "../../../../src/sandbox/settings/chosen-policy.js";
import { temporaryDirectory } from "../../../support/sandbox.js";
import { engine, planFor, requestFor, type Wanted } from "../plan/plan-fixture.js";

const root = { uid: 0, gid: 0 };
let workspace: string;

beforeEach(async () => {
  const made = await temporaryDirectory();
  onTestFinished(() => made[Symbol.asyncDispose]());
  workspace = join(made.path, "work");
  await mkdir(workspace);
});

async function notices(wanted: Wanted = {}): Promise<string[]> {
  const plan = await planFor(workspace, { hostUser: root, ...wanted });
  return plan.notices.map(({ message, hint }) => `${message.replace(workspace, "work")}; ${hint}`);
}

describe.skipIf(process.getuid?.() !== 0)("a workspace of somebody else [needs root]", () => {
  beforeEach(async () => await chown(workspace, 1234, 1235));

  it("is told to root, who has no capabilities, with whom the commands could run as", async () => {
    expect(await notices()).toEqual([
      'commands cannot write to "work": it belongs to 1234:1235, and they run as 0:0; run them as its owner: --user 1234:1235, or user = "1234:1235" in a policy file',
    ]);
    const request = await requestFor(workspace, { hostUser: root });
    const policy = await loadChosenPolicy({ user: "1234:1235" });
    expect(await planSandbox({ ...request, policy })).toMatchObject({
      notices: [],
      user: { uid: 1234, gid: 1235 },
    });
  });

  it("is told to another user, who cannot become its owner", async () => {
    expect(await notices({ hostUser: { uid: 1000, gid: 1000 } })).toEqual([
      expect.stringMatching(/run as 1000:1000; use a directory of your own/),
    ]);
    const rootless = { ...engine, securityOptions: ["name=rootless"] };
    expect(await notices({ hostUser: { uid: 1000, gid: 1000 }, engine: rootless })).toEqual([
      expect.stringMatching(/run as 1000:1000; use a directory of your own/),
    ]);
  });

  it("is told where it cannot even be read, in read-only as well", async () => {
    expect(await notices({ mode: "read-only" })).toEqual([]);
    await chmod(workspace, 0o700);
    for (const mode of ["read-only", "workspace-write"])
      expect(await notices({ mode })).toEqual([expect.stringContaining('cannot use "work"')]);
  });

  it("is not told where the commands can write: by their group, as everybody, or with capabilities", async () => {
    expect(await notices({ mode: "danger-full-access" })).toEqual([]);
    await chmod(workspace, 0o775);
    expect(await notices({ hostUser: { uid: 1000, gid: 1235 } })).toEqual([]);
    await chmod(workspace, 0o777);
    expect(await notices()).toEqual([]);
  });

  it("is told of each further directory", async () => {
    const more = join(workspace, "../more");
    await mkdir(more);
    await chown(workspace, 0, 0);
    await chown(more, 7, 7);
    expect(await notices({ addDirs: [more] })).toEqual([expect.stringContaining("belongs to 7:7")]);
  });
});

describe("the user of a policy", () => {
  it("is the chosen one, unless the policy names one", async () => {
    expect((await loadChosenPolicy({ user: "7:8" })).policy.user).toBe("7:8");
    expect((await loadChosenPolicy({ user: "7:8", mode: "read-only" })).policy.user).toBe("7:8");
    await expect(loadChosenPolicy({ user: "7:8", mode: "danger-full-access" })).rejects.toMatchObject({
      code: "usage.invalid",
      message: "the policy danger-full-access says itself whom commands run as: root",
    });
  });

  it.each(["7", "alice", "-1:0", "0:0:0", ""])("is not %j", async (user) => {
    await expect(loadChosenPolicy({ user })).rejects.toMatchObject({ code: "usage.invalid" });
  });
});
