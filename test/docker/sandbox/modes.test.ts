import { mkdir, readdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { isRootless } from "../../../src/sandbox/docker/rootless.js";
import { promised } from "../../guarantees.js";
import { attempt, attemptEach } from "../../support/attempts.js";
import { forEachHostUser } from "../../support/each-host-user.js";
import { treeDigest } from "../../support/host-tree.js";
import { giveToHostUser } from "../../support/host-users.js";
import { differs, titled } from "../../support/runtime-differences.js";
import { sandboxTest } from "../../support/sandbox.js";

/** A repository with two of the four protected names. */
async function makeRepository(directory: string): Promise<void> {
  await mkdir(join(directory, ".git/hooks"), { recursive: true });
  await writeFile(join(directory, ".git/config"), "[core]\n");
  await mkdir(join(directory, ".codex"));
  await writeFile(join(directory, ".codex/config.toml"), "");
  await mkdir(join(directory, "src"));
  await writeFile(join(directory, "src/main.c"), "int main(void) { return 0; }\n");
  await giveToHostUser(directory);
}

const systemPlaces = ["/new", "/etc/new", "/usr/new", "/usr/bin/new", "/var/new", "/root/new", "/.brig/new"];
/** A directory without a write bit, on a read-only mount: kernels differ in which of the two they see first. */
const refused = expect.stringMatching(/^(?:EROFS|EACCES)$/);
const scratchPlaces = ["/tmp/new", "/home/brig/new", "/run/new", "/dev/shm/new"];

describe("read-only", () => {
  forEachHostUser((userTest) => {
    userTest(
      promised("contained.read-only", "not one byte of the workspace can be changed"),
      async ({ open, directory }) => {
        await makeRepository(directory);
        const before = await treeDigest(directory);
        const sandbox = await open({ workspace: directory, mode: "read-only" });
        expect(
          await attempt(sandbox, [
            ["create", `${directory}/new`],
            ["append", `${directory}/src/main.c`],
            ["truncate", `${directory}/src/main.c`],
            ["unlink", `${directory}/src/main.c`],
            ["rename", `${directory}/src`, `${directory}/moved`],
            ["mkdir", `${directory}/.agents`],
            ["append", `${directory}/.git/config`],
            ["read", `${directory}/src/main.c`],
          ]),
        ).toEqual(["EROFS", "EROFS", "EROFS", "EROFS", "EROFS", "EROFS", "EROFS", "ok"]);
        expect(await treeDigest(directory)).toBe(before);
        await sandbox.close();
        expect(await treeDigest(directory)).toBe(before);
      },
    );

    userTest("the system cannot be changed either, and scratch space can", async ({ open }) => {
      const sandbox = await open({ mode: "read-only" });
      expect(await attemptEach(sandbox, "create", systemPlaces)).toEqual(
        Object.fromEntries(systemPlaces.map((path) => [path, refused])),
      );
      expect(await attemptEach(sandbox, "create", scratchPlaces)).toEqual(
        Object.fromEntries(scratchPlaces.map((path) => [path, "ok"])),
      );
    });

    userTest("an added directory is refused, not left aside", async ({ open, directory }) => {
      await expect(open({ mode: "read-only", addDirs: [directory] })).rejects.toMatchObject({
        code: "usage.invalid",
      });
    });
  });
});

describe("workspace-write", () => {
  forEachHostUser((userTest, { uid, gid }) => {
    userTest("the workspace can be changed, and the host sees it", async ({ open, directory }) => {
      await makeRepository(directory);
      const sandbox = await open({ workspace: directory });
      expect(
        await attempt(sandbox, [
          ["create", `${directory}/new`],
          ["append", `${directory}/src/main.c`],
          ["rename", `${directory}/src`, `${directory}/moved`],
        ]),
      ).toEqual(["ok", "ok", "ok"]);
      expect(await readdir(directory)).toEqual(expect.arrayContaining(["new", "moved"]));
      expect(await stat(join(directory, "new"))).toMatchObject({ uid, gid });
    });

    userTest("what it makes belongs to the host's user", async ({ open, directory }) => {
      const sandbox = await open({ workspace: directory, env: { LANG: "C" } });
      const result = await sandbox.exec(["sh", "-c", "id -u; id -g; touch by-command; echo ~"]);
      await sandbox.files.write(`${directory}/by-file`, "x");
      const inside = isRootless(await sandbox.engine.info()) ? "0\n0" : `${uid}\n${gid}`;
      expect(result.output).toBe(`${inside}\n/home/brig\n`);
      for (const name of ["by-command", "by-file"])
        expect(await stat(join(directory, name))).toMatchObject({ uid, gid });
    });

    userTest(
      promised("contained.protected", "protected names stay as they are, present or absent"),
      async ({ open, directory }) => {
        await makeRepository(directory);
        const before = await treeDigest(directory);
        const sandbox = await open({ workspace: directory });
        expect(
          await attempt(sandbox, [
            ["append", `${directory}/.git/config`],
            ["create", `${directory}/.git/hooks/post-checkout`],
            ["unlink", `${directory}/.git/config`],
            ["append", `${directory}/.codex/config.toml`],
            ["create", `${directory}/.agents/new`],
            ["create", `${directory}/.brig/new`],
            ["rmdir", `${directory}/.agents`],
          ]),
        ).toEqual(["EROFS", "EROFS", "EROFS", "EROFS", refused, refused, "EBUSY"]);
        await sandbox.close();
        expect(await treeDigest(directory)).toBe(before);
      },
    );

    userTest("a protected name cannot be moved out of the way", async ({ open, directory }) => {
      await makeRepository(directory);
      const before = await treeDigest(directory);
      const sandbox = await open({ workspace: directory });
      const moves = [".git", ".codex", ".agents", ".brig"].map((name): [string, string, string] => [
        "rename",
        `${directory}/${name}`,
        `${directory}/moved${name}`,
      ]);
      expect(await attempt(sandbox, moves)).toEqual(["EBUSY", "EBUSY", "EBUSY", "EBUSY"]);
      await sandbox.close();
      expect(await treeDigest(directory)).toBe(before);
    });

    userTest(
      "git init makes no repository at the top, and does one further down",
      async ({ open, directory }) => {
        const sandbox = await open({ workspace: directory });
        expect((await sandbox.exec(["git", "init", "-q"])).exitCode).not.toBe(0);
        expect((await sandbox.exec(["git", "init", "-q", "below"])).exitCode).toBe(0);
        await sandbox.close();
        expect(await readdir(directory)).toEqual(["below"]);
      },
    );

    userTest(
      "the directory that a .git file points to is held too, with what lies on the way",
      async ({ open, directory }) => {
        await mkdir(join(directory, "real/git"), { recursive: true });
        await writeFile(join(directory, "real/git/config"), "[core]\n");
        await writeFile(join(directory, ".git"), "gitdir: real/git\n");
        await giveToHostUser(directory);
        const sandbox = await open({ workspace: directory });
        expect(
          await attempt(sandbox, [
            ["append", `${directory}/.git`],
            ["append", `${directory}/real/git/config`],
            ["rename", `${directory}/real/git`, `${directory}/real/moved`],
            ["rename", `${directory}/real`, `${directory}/moved`],
            ["create", `${directory}/real/beside`],
          ]),
        ).toEqual(["EROFS", "EROFS", "EBUSY", "EBUSY", "ok"]);
      },
    );

    userTest("an added directory can be written, its protected names cannot", async ({ open, directory }) => {
      await makeRepository(directory);
      const sandbox = await open({ addDirs: [directory] });
      expect(
        await attempt(sandbox, [
          ["create", `${directory}/new`],
          ["append", `${directory}/.git/config`],
          ["create", `${directory}/.agents/new`],
        ]),
      ).toEqual(["ok", "EROFS", refused]);
      expect((await stat(join(directory, "new"))).uid).toBe(uid);
    });

    userTest(
      "the rest of the host is not there, and the system is read-only",
      async ({ open, directory }) => {
        await writeFile(join(directory, "secret"), "s");
        const sandbox = await open();
        expect(await attempt(sandbox, [["read", join(directory, "secret")]])).toEqual(["ENOENT"]);
        expect(await attemptEach(sandbox, "create", systemPlaces)).toEqual(
          Object.fromEntries(systemPlaces.map((path) => [path, refused])),
        );
        expect(await attemptEach(sandbox, "create", scratchPlaces)).toEqual(
          Object.fromEntries(scratchPlaces.map((path) => [path, "ok"])),
        );
      },
    );

    userTest.skipIf(differs("modes.setuid-bit"))(
      titled("modes.setuid-bit", "no setuid bit can be set, neither in the workspace nor in scratch space"),
      async ({ open, directory }) => {
        const sandbox = await open({ workspace: directory });
        expect(
          await attempt(sandbox, [
            ["setuid", `${directory}/tool`],
            ["setuid", "/tmp/tool"],
          ]),
        ).toEqual(["EPERM", "EPERM"]);
        expect((await stat(join(directory, "tool"))).mode & 0o7000).toBe(0);
      },
    );
  });
});

/** Whoever runs brig: a command has root's uid here, and may give itself every other. */
describe("danger-full-access", () => {
  sandboxTest("everything can be written, as root", async ({ open, directory }) => {
    await makeRepository(directory);
    const sandbox = await open({ workspace: directory, mode: "danger-full-access" });
    const places = ["/new", "/etc/new", "/usr/new", "/tmp/new", "/root/new", `${directory}/.git/new`];
    expect(await attemptEach(sandbox, "create", [...places, `${directory}/new`])).toEqual(
      Object.fromEntries([...places, `${directory}/new`].map((path) => [path, "ok"])),
    );
    expect(await attempt(sandbox, [["rename", `${directory}/.git`, `${directory}/moved`]])).toEqual(["ok"]);
    expect((await sandbox.exec(["id", "-u"])).stdout).toBe("0\n");
    expect(await readdir(directory)).toEqual(expect.arrayContaining(["moved", "new"]));
  });

  sandboxTest(
    "holds the names that another policy protects, as the container of approved commands does",
    async ({ open, directory }) => {
      await makeRepository(directory);
      const before = await treeDigest(directory);
      const protectsLike = ["workspace-write", "read-only"];
      for (const name of protectsLike) {
        const sandbox = await open({ workspace: directory, mode: "danger-full-access", protectsLike: name });
        expect(
          await attempt(sandbox, [
            ["append", `${directory}/.git/config`],
            ["create", `${directory}/.git/hooks/post-checkout`],
            ["create", `${directory}/.agents/new`],
            ["rename", `${directory}/.git`, `${directory}/moved`],
            ["create", "/etc/new"],
          ]),
        ).toEqual(["EROFS", "EROFS", "EROFS", "EBUSY", "ok"]);
        await sandbox.close();
      }
      expect(await treeDigest(directory)).toBe(before);
    },
  );

  sandboxTest(
    "no device and no file capability can be left in the workspace",
    async ({ open, directory }) => {
      const sandbox = await open({ workspace: directory, mode: "danger-full-access" });
      const tries =
        "mknod disk b 8 0; mknod null c 1 3; cp /bin/true tool; python3 -c \"import os; os.setxattr('tool', 'security.capability', bytes.fromhex('0100000200200000000000000000000000000000'))\"";
      const { stderr } = await sandbox.exec(["sh", "-c", tries]);
      expect(stderr.match(/Operation not permitted/g)).toHaveLength(3);
      expect(await readdir(directory)).toEqual(["tool"]);
    },
  );

  sandboxTest("a setuid bit can be set: the control of the test above", async ({ open, directory }) => {
    const sandbox = await open({ workspace: directory, mode: "danger-full-access" });
    expect(await attempt(sandbox, [["setuid", `${directory}/tool`]])).toEqual(["ok"]);
    expect((await stat(join(directory, "tool"))).mode & 0o7777).toBe(0o4755);
  });

  sandboxTest("the toolbox stays read-only", async ({ open }) => {
    const sandbox = await open({ mode: "danger-full-access" });
    expect(await attempt(sandbox, [["create", "/.brig/new"]])).toEqual([refused]);
  });
});

forEachHostUser((userTest) => {
  userTest(
    "two sandboxes see neither each other's processes nor each other's scratch space",
    async ({ open }) => {
      const [one, other] = [await open(), await open()];
      await one.files.write("/tmp/mark", "one");
      const sleeping = await one.spawn(["sleep", "4242"]);
      await expect(other.files.read("/tmp/mark")).rejects.toMatchObject({ code: "file.not-found" });
      const commandLines = async (sandbox: typeof one) =>
        (await sandbox.exec(["sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"])).stdout;
      // A process that was just started may still be the runner's, which then becomes the program.
      await expect.poll(() => commandLines(one)).toContain("sleep 4242");
      expect(await commandLines(other)).not.toContain("sleep 4242");
      await sleeping.kill();
    },
  );
});
