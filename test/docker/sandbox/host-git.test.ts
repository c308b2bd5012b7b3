import { execFile } from "node:child_process";
import { chmod, chown, mkdir, readdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect } from "vitest";
import { promised } from "../../guarantees.js";
import { type Attempt, attempt } from "../../support/attempts.js";
import { forEachHostUser } from "../../support/each-host-user.js";
import type { HostUser } from "../../support/host-users.js";

const run = promisify(execFile);

/** What an agent would have git on the host run: it leaves a file with the name of the attack. */
function canary(folder: string, name: string): string {
  return `#!/bin/sh\n: >${folder}/canaries/${name}\n`;
}

class HostRepository {
  readonly folder: string;
  readonly workspace: string;
  readonly #user: HostUser;

  constructor(folder: string, user: HostUser) {
    this.folder = folder;
    this.workspace = join(folder, "repo");
    this.#user = user;
  }

  /** As the host's user, with a configuration of its own. */
  async git(...args: string[]): Promise<string> {
    const env = {
      PATH: process.env.PATH,
      HOME: this.folder,
      GIT_CONFIG_NOSYSTEM: "1",
      GIT_AUTHOR_NAME: "a",
      GIT_AUTHOR_EMAIL: "a@b",
      GIT_COMMITTER_NAME: "a",
      GIT_COMMITTER_EMAIL: "a@b",
    };
    const safe = ["-c", "protocol.file.allow=always"];
    return (await run("git", [...safe, ...args], { ...this.#user, cwd: this.workspace, env })).stdout;
  }

  async make(): Promise<void> {
    const { folder, workspace } = this;
    await mkdir(join(folder, "canaries"));
    await mkdir(workspace);
    for (const path of [folder, join(folder, "canaries"), workspace])
      await chown(path, this.#user.uid, this.#user.gid);
    const init = (...args: string[]) => this.git("-c", "init.defaultBranch=main", "init", "-q", ...args);
    await init("../library");
    await this.git("-C", "../library", "commit", "-q", "--allow-empty", "-m", "library");
    await init();
    for (const name of ["used", "unused", "absent"])
      await this.git("submodule", "--quiet", "add", "../library", `modules-${name}`);
    await init("nested");
    await this.git("init", "-q", "--bare", "bare.git");
    await this.#write("scripts/pre-commit", "#!/bin/sh\n");
    await this.#write("tools/clean", "#!/bin/sh\ncat\n");
    await this.#write("shared.config", "[alias]\n\tst = status\n");
    await this.#write(".gitattributes", "*.c filter=tidy\n");
    await this.#write("main.c", "int main;\n");
    await symlink("../../scripts/pre-commit", join(workspace, ".git/hooks/pre-commit"));
    await this.git("config", "include.path", "../shared.config");
    await this.git("config", "filter.tidy.clean", "tools/clean %f");
    await this.git("add", "--all", ".", ":!nested", ":!bare.git");
    await this.git("commit", "-q", "-m", "first");
    await this.git("submodule", "--quiet", "deinit", "modules-unused");
    await this.git("submodule", "--quiet", "deinit", "modules-absent");
    await run("rmdir", [join(workspace, "modules-absent")]);
  }

  async #write(name: string, text: string): Promise<void> {
    const path = join(this.workspace, name);
    await run("mkdir", ["-p", join(path, "..")], { ...this.#user });
    await writeFile(path, text, { mode: 0o755 });
    await chmod(path, 0o755);
    await chown(path, this.#user.uid, this.#user.gid);
  }

  /** What a person does after a session. */
  async use(): Promise<string[]> {
    await this.git("status");
    await this.git("add", "--", "main.c").catch(() => "");
    await this.git("commit", "-q", "--allow-empty", "-m", "next").catch(() => "");
    await this.git("-C", "nested", "status");
    await this.git("-C", "bare.git", "status").catch(() => "");
    return (await readdir(join(this.folder, "canaries"))).sort();
  }
}

/** Each step is an attempt of its own: none may stop the others. */
function attack({ folder, workspace }: HostRepository): string {
  const script = (name: string) => `${workspace}/evil/${name}`;
  const evilDirectory = (path: string, name: string) => `
    rm -rf ${path}; mkdir -p ${path}/objects ${path}/refs && echo ref: refs/heads/main >${path}/HEAD
    printf '[core]\\n\\tfsmonitor = %s\\n' ${script(name)} >${path}/config`;
  const programs = ["used", "unused", "absent", "include", "nested", "bare", "hook", "filter"].map(
    (name) => `printf '%s' '${canary(folder, name)}' >evil/${name}; chmod 755 evil/${name}`,
  );
  return `cd ${workspace}; mkdir -p evil; ${programs.join("\n")}
    ${["used", "unused", "absent"].map((name) => evilDirectory(`modules-${name}/.git`, name)).join("\n")}
    printf '[core]\\n\\tfsmonitor = %s\\n' ${script("include")} >shared.config
    mv shared.config away; printf '[core]\\n\\tfsmonitor = %s\\n' ${script("include")} >shared.config
    cp evil/hook scripts/pre-commit; rm -f scripts/pre-commit; mv scripts scripts-away; mkdir -p scripts; cp evil/hook scripts/pre-commit
    cp evil/filter tools/clean; mv tools tools-away; mkdir -p tools; cp evil/filter tools/clean; echo >>main.c
    git -C nested config core.fsmonitor ${script("nested")}; ${evilDirectory("nested/.git", "nested")}
    printf '[core]\\n\\trepositoryformatversion = 0\\n\\tbare = false\\n\\tworktree = %s\\n\\tfsmonitor = %s\\n' ${workspace}/evil ${script("bare")} >bare.git/config
    true`;
}

/** The steps of the attack one by one, and what the kernel says to each. */
const refusals: readonly (readonly [attempt: Attempt, errno: string])[] = [
  [["append", "modules-used/.git"], "EROFS"],
  [["rename", "modules-used/.git", "modules-used/away"], "EBUSY"],
  [["create", "modules-unused/.git"], "EROFS"],
  [["rename", "modules-unused", "away"], "EBUSY"],
  [["create", "modules-absent/.git"], "EROFS"],
  [["append", ".git/config"], "EROFS"],
  [["append", "shared.config"], "EROFS"],
  [["rename", "shared.config", "away"], "EBUSY"],
  [["append", "scripts/pre-commit"], "EROFS"],
  [["rename", "scripts", "away"], "EBUSY"],
  [["append", "tools/clean"], "EROFS"],
  [["append", "nested/.git/config"], "EROFS"],
  [["rename", "nested/.git", "nested/away"], "EBUSY"],
  [["append", "bare.git/config"], "EROFS"],
];

const everything = ["absent", "bare", "filter", "hook", "include", "nested", "unused", "used"];

describe("git on the host, after a session", () => {
  forEachHostUser((userTest, user) => {
    userTest(
      promised("contained.host-git", "runs nothing that an agent wrote"),
      async ({ open, directory }) => {
        const repository = new HostRepository(directory, user);
        await chmod(directory, 0o755);
        await repository.make();
        const sandbox = await open({ workspace: repository.workspace });
        expect(
          await attempt(
            sandbox,
            refusals.map(([one]) => one),
          ),
        ).toEqual(refusals.map(([, errno]) => errno));
        await sandbox.exec(["bash", "-c", attack(repository)]);
        await sandbox.close();
        expect(await repository.use()).toEqual([]);
        await repository.git("fsck", "--full");

        const unprotected = await open({ workspace: repository.workspace, mode: "danger-full-access" });
        await unprotected.exec(["bash", "-c", attack(repository)]);
        await unprotected.exec(["chown", "-hR", `${user.uid}:${user.gid}`, repository.workspace]);
        await unprotected.close();
        expect(await repository.use()).toEqual(everything);
      },
    );

    userTest("reads no object that a hard link let an agent change", async ({ open, directory }) => {
      const repository = new HostRepository(directory, user);
      await repository.make();
      await repository.git("clone", "-q", "--local", ".", "copy");
      const { workspace } = repository;
      const id = (await repository.git("-C", "copy", "rev-parse", "HEAD")).trim();
      const object = `.git/objects/${id.slice(0, 2)}/${id.slice(2)}`;
      await chmod(join(workspace, object), 0o644);
      const sandbox = await open({ workspace });
      expect(
        await attempt(sandbox, [
          ["append", join(workspace, "copy", object)],
          ["append", join(workspace, object)],
          ["rename", join(workspace, "copy"), join(workspace, "moved")],
        ]),
      ).toEqual(["EROFS", "EROFS", "EBUSY"]);
      await sandbox.close();
      await repository.git("fsck", "--full");
      await run("ln", [join(workspace, ".git/config"), join(workspace, "same.config")]);
      await expect(open({ workspace })).rejects.toMatchObject({
        code: "workspace.invalid",
        message: expect.stringContaining("same.config"),
      });
    });
  });
});
