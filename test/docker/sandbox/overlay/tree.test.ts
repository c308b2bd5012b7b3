import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { treeLabel } from "../../../../src/sandbox/overlay/tree-volumes.js";
import type { WorkspaceTree } from "../../../../src/sandbox/overlay/workspace-tree.js";
import { exec } from "../../../../src/sandbox/process/run-to-end.js";
import { openedSandboxOf, type Sandbox } from "../../../../src/sandbox/sandbox.js";
import { forEachHostUser } from "../../../support/each-host-user.js";
import { giveToHostUser } from "../../../support/host-users.js";
import { temporaryDirectory } from "../../../support/sandbox.js";

function treeOf(sandbox: Sandbox): WorkspaceTree {
  const tree = openedSandboxOf(sandbox).tree;
  if (tree === null) throw new Error("the sandbox has no tree");
  return tree;
}

async function volumesOf(
  { engine }: { engine: import("../../../../src/sandbox/docker/engine-types.js").Engine },
  id: string,
) {
  return (await engine.listVolumes([treeLabel, `brig.session=${id}`])).map(({ name }) => name);
}

forEachHostUser((it) => {
  it("keeps what commands write, remove and rename away from the host", async ({ open }) => {
    await using directory = await temporaryDirectory();
    const workspace = directory.path;
    mkdirSync(join(workspace, "folder"));
    writeFileSync(join(workspace, "file"), "the host's\n");
    writeFileSync(join(workspace, "removed"), "");
    writeFileSync(join(workspace, "folder/below"), "");
    await giveToHostUser(workspace);
    const sandbox = await open({ workspace, workspaceKind: "overlay" });
    const script =
      "set -e; echo changed > file; echo new > new; rm removed; mv folder renamed; cat renamed/below file; ls";
    const { exitCode, output } = await sandbox.exec(["sh", "-c", script]);
    expect({ exitCode, output }).toEqual({ exitCode: 0, output: "changed\nfile\nnew\nrenamed\n" });
    expect(readdirSync(workspace).toSorted()).toEqual(["file", "folder", "removed"]);
    expect(readFileSync(join(workspace, "file"), "utf8")).toBe("the host's\n");
  });

  it("has the workspace's own owner and mode, even setgid", async ({ open }) => {
    await using directory = await temporaryDirectory();
    chmodSync(directory.path, 0o2751);
    const { uid, gid } = statSync(directory.path);
    const sandbox = await open({ workspace: directory.path, workspaceKind: "overlay" });
    const { stdout } = await sandbox.exec(["stat", "-c", "%u %g %a", "."]);
    expect(stdout).toBe(`${uid} ${gid} 2751\n`);
  });

  it("has protected names that cannot be written, and makes none of them on the host", async ({ open }) => {
    await using directory = await temporaryDirectory();
    mkdirSync(join(directory.path, ".git"));
    await giveToHostUser(directory.path);
    const sandbox = await open({ workspace: directory.path, workspaceKind: "overlay" });
    for (const name of [".git", ".codex", ".agents", ".brig"]) {
      const { exitCode, output } = await sandbox.exec(["mkdir", `${name}/x`]);
      expect({ name, exitCode, output }).toMatchObject({
        exitCode: 1,
        output: expect.stringContaining("Read-only"),
      });
    }
    expect(readdirSync(directory.path)).toEqual([".git"]);
    expect(treeOf(sandbox).leftOut.toSorted()).toEqual([".agents", ".brig", ".codex", ".git"]);
  });

  it("has a keeper that reads and writes every file of the tree", async ({ open }) => {
    await using directory = await temporaryDirectory();
    writeFileSync(join(directory.path, "file"), "of the host\n");
    const sandbox = await open({ workspace: directory.path, workspaceKind: "overlay" });
    await sandbox.exec(["sh", "-c", "echo secret > closed; chmod 0 closed"]);
    const keeper = await treeOf(sandbox).keeper();
    const read = await exec(keeper, ["cat", "/merged/closed", "/upper/closed", "/base/file"], {});
    expect(read.output).toBe("secret\nsecret\nof the host\n");
    await exec(keeper, ["sh", "-c", "echo from outside > /merged/file"], {});
    expect((await sandbox.exec(["cat", "file"])).stdout).toBe("from outside\n");
    const refused = await exec(keeper, ["sh", "-c", "echo x > /base/file; echo x > /upper/file"], {});
    expect(String(refused.output).match(/Read-only file system/g)).toHaveLength(2);
  });

  it("has another keeper when the first one was killed, and loses nothing", async ({ open }) => {
    await using directory = await temporaryDirectory();
    const sandbox = await open({ workspace: directory.path, workspaceKind: "overlay" });
    await sandbox.exec(["sh", "-c", "echo kept > file; chmod 700 ."]);
    const tree = treeOf(sandbox);
    const containers = await sandbox.engine.listContainers([`brig.session=${tree.id}`]);
    expect(containers).toHaveLength(1);
    await Promise.all(containers.map(({ id }) => sandbox.engine.removeContainer(id)));
    const [one, other] = await Promise.all([tree.keeper(), tree.keeper()]);
    expect(one).toBe(other);
    const { output } = await exec(one, ["sh", "-c", "cat /merged/file; stat -c %a /merged"], {});
    expect(output).toBe("kept\n700\n");
    expect(await sandbox.engine.listContainers([`brig.session=${tree.id}`])).toHaveLength(1);
  });

  it("writes to the host only through an applier, and not to protected names", async ({ open }) => {
    await using directory = await temporaryDirectory();
    mkdirSync(join(directory.path, ".git"));
    await giveToHostUser(directory.path);
    const sandbox = await open({ workspace: directory.path, workspaceKind: "overlay" });
    const applier = await treeOf(sandbox).openApplier();
    const { output } = await exec(
      applier.context,
      ["sh", "-c", "echo x > /base/file; echo x > /base/.git/config"],
      {},
    );
    await applier.close();
    expect(output).toContain("Read-only file system");
    expect(readFileSync(join(directory.path, "file"), "utf8")).toBe("x\n");
    expect(existsSync(join(directory.path, ".git/config"))).toBe(false);
  });

  it("leaves no volume and no container when it is closed", async ({ open }) => {
    await using directory = await temporaryDirectory();
    const sandbox = await open({ workspace: directory.path, workspaceKind: "overlay" });
    const { id } = treeOf(sandbox);
    expect(await volumesOf(sandbox, id)).toHaveLength(3);
    await sandbox.close();
    expect(await sandbox.engine.listVolumes([`brig.session=${id}`])).toEqual([]);
    expect(await sandbox.engine.listContainers([`brig.session=${id}`])).toEqual([]);
  });
});
