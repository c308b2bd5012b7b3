import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect } from "vitest";
import type { ContainerBody } from "../../../src/sandbox/docker/engine-types.js";
import { planSandbox } from "../../../src/sandbox/plan/plan-sandbox.js";
import { loadPolicy } from "../../../src/sandbox/policy/load-policy.js";
import { promised } from "../../guarantees.js";
import { attempt } from "../../support/attempts.js";
import { forEachHostUser } from "../../support/each-host-user.js";
import { testEngine } from "../../support/engine.js";
import { giveToHostUser } from "../../support/host-users.js";
import { startRawContainer } from "../../support/raw-container.js";
import { sandboxTest } from "../../support/sandbox.js";

/** Below /tmp, which is in memory inside: the directories that lead to the workspace are the engine's making. */
async function makeDeep(directory: string): Promise<string> {
  const workspace = join(directory, "one/two");
  await mkdir(workspace, { recursive: true });
  await writeFile(join(workspace, "text"), "the host's\n");
  await giveToHostUser(directory);
  return workspace;
}

const forge = (directory: string) =>
  `mv ${directory} ${directory}-away && mkdir -p ${directory}/one/two && echo forged >${directory}/one/two/text`;

describe("a workspace below a directory in memory", () => {
  forEachHostUser((userTest) => {
    userTest(
      promised("contained.workspace", "cannot be replaced by a forged one"),
      async ({ open, directory }) => {
        const workspace = await makeDeep(directory);
        const sandbox = await open({ workspace, mode: "read-only" });
        expect(
          await attempt(sandbox, [
            ["rename", directory, `${directory}-away`],
            ["rename", join(directory, "one"), join(directory, "away")],
            ["create", join(directory, "new")],
            ["create", join(directory, "one/new")],
            ["rename", workspace, `${workspace}-away`],
          ]),
        ).toEqual(["EBUSY", "EROFS", "EROFS", "EROFS", "EROFS"]);
        await sandbox.exec(["sh", "-c", forge(directory)]);
        expect((await sandbox.files.read(join(workspace, "text"))).toString()).toBe("the host's\n");
      },
    );

    userTest("can be two, one beside or inside the other", async ({ open, directory }) => {
      const [workspace, beside] = [join(directory, "a/b"), join(directory, "a/c/d")];
      for (const path of [workspace, beside, join(workspace, "e/f")]) await mkdir(path, { recursive: true });
      await giveToHostUser(directory);
      const sandbox = await open({ workspace, addDirs: [beside, join(workspace, "e/f")] });
      expect(
        await attempt(sandbox, [
          ["create", join(beside, "new")],
          ["create", join(workspace, "e/f/new")],
          ["create", join(directory, "a/c/new")],
          ["rename", join(directory, "a"), join(directory, "b")],
        ]),
      ).toEqual(["ok", "ok", "EROFS", "EROFS"]);
    });
  });

  sandboxTest("could be, without the mount above it", async ({ directory }) => {
    const workspace = await makeDeep(directory);
    const engine = await testEngine();
    const plan = await planSandbox({
      policy: await loadPolicy("workspace-write"),
      workspace,
      image: "brig/base",
      addDirs: [],
      writableRoots: [],
      env: {},
      hostUser: { uid: 0, gid: 0 },
      leaseSeconds: 60,
      keep: false,
      sessionId: "parents-test",
      labels: {},
      engine: await engine.info(),
      endpoint: engine.endpoint,
      host: { homeDirectory: null },
    });
    const weaken = (body: ContainerBody) => void delete body.HostConfig.Tmpfs[directory];
    await using container = await startRawContainer(engine, plan, weaken);
    const script = `${forge(directory)}; cat ${workspace}/text`;
    expect(await container.exec(["sh", "-c", script])).toMatchObject({ output: "forged\n" });
    expect(await readFile(join(workspace, "text"), "utf8")).toBe("the host's\n");
  });
});
