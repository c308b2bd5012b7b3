import { mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { readEnvironment } from "../../../src/lib/env.js";
import { promised } from "../../guarantees.js";
import { type Attempt, attempt } from "../../support/attempts.js";
import { forEachHostUser } from "../../support/each-host-user.js";
import { giveToHostUser } from "../../support/host-users.js";
import { temporaryDirectory } from "../../support/sandbox.js";

/** This process's environment with the two directories in it. */
function environmentWith(brigHome: string, codexHome = "/proc/nowhere") {
  return readEnvironment({ ...process.env, BRIG_HOME: brigHome, CODEX_HOME: codexHome });
}

/** What a command would do to have the next start obey it. */
function attacks(home: string, parent: string): Attempt[] {
  return [
    ["create", `${home}/AGENTS.md`],
    ["append", `${home}/config.toml`],
    ["unlink", `${home}/config.toml`],
    ["rename", home, `${home}-moved`],
    ["rename", parent, `${parent}-moved`],
  ];
}

describe.each(["workspace-write", "danger-full-access"] as const)(
  "in %s brig's own directory in the workspace",
  (mode) => {
    forEachHostUser((userTest) => {
      userTest(
        promised("contained.configuration", "cannot be written, replaced or moved away"),
        async ({ open, directory }) => {
          const [brigHome, codexHome] = [join(directory, "state/brig"), join(directory, "other/codex")];
          for (const home of [brigHome, codexHome]) {
            await mkdir(home, { recursive: true });
            await writeFile(join(home, "config.toml"), 'model = "mine"\n');
          }
          await giveToHostUser(directory);
          const environment = environmentWith(brigHome, codexHome);
          const sandbox = await open({ workspace: directory, mode, environment });
          const outcomes = await attempt(sandbox, [
            ...attacks(brigHome, join(directory, "state")),
            ...attacks(codexHome, join(directory, "other")),
            ["read", `${brigHome}/config.toml`],
            ["create", `${directory}/state/beside`],
          ]);
          const refused = ["EROFS", "EROFS", "EROFS", "EBUSY", "EBUSY"];
          expect(outcomes).toEqual([...refused, ...refused, "ok", "ok"]);
          expect(await readFile(join(brigHome, "config.toml"), "utf8")).toBe('model = "mine"\n');
          await writeFile(join(brigHome, "auth"), "brig itself can write there meanwhile");
        },
      );

      userTest("could be, were it not brig's", async ({ open, directory }) => {
        const home = join(directory, "state/brig");
        await mkdir(home, { recursive: true });
        await writeFile(join(home, "config.toml"), 'model = "mine"\n');
        await giveToHostUser(directory);
        await using elsewhere = await temporaryDirectory();
        const sandbox = await open({
          workspace: directory,
          mode,
          environment: environmentWith(elsewhere.path),
        });
        const outcomes = await attempt(sandbox, attacks(home, join(directory, "state")));
        expect(outcomes).toEqual(["ok", "ok", "ok", "ok", "ok"]);
      });
    });
  },
);

describe("brig's config.toml", () => {
  forEachHostUser((userTest) => {
    userTest("is held where it is a link into the workspace", async ({ open, directory }) => {
      await using home = await temporaryDirectory();
      const file = join(directory, "dotfiles/brig.toml");
      await mkdir(join(directory, "dotfiles"));
      await writeFile(file, "");
      await symlink(file, join(home.path, "config.toml"));
      await giveToHostUser(directory);
      const attempts: Attempt[] = [
        ["append", file],
        ["unlink", file],
        ["rename", join(directory, "dotfiles"), join(directory, "moved")],
      ];
      const held = await open({ workspace: directory, environment: environmentWith(home.path) });
      expect(await attempt(held, attempts)).toEqual(["EROFS", "EBUSY", "EBUSY"]);
      await using elsewhere = await temporaryDirectory();
      const other = await open({ workspace: directory, environment: environmentWith(elsewhere.path) });
      expect(await attempt(other, attempts)).toEqual(["ok", "ok", "ok"]);
    });
  });
});

describe("brig's own directory", () => {
  forEachHostUser((userTest) => {
    userTest("in an added directory is held too", async ({ open, directory }) => {
      const home = join(directory, "brig");
      await mkdir(home);
      await giveToHostUser(directory);
      const sandbox = await open({ addDirs: [directory], environment: environmentWith(home) });
      expect(await attempt(sandbox, [["create", `${home}/config.toml`]])).toEqual(["EROFS"]);
    });

    userTest("that a command could make is refused, but not in read-only", async ({ open, directory }) => {
      const environment = environmentWith(join(directory, "state"));
      await expect(open({ workspace: directory, environment })).rejects.toMatchObject({
        code: "workspace.invalid",
        message: expect.stringContaining(`${directory}/state`),
        hint: expect.stringContaining("BRIG_HOME"),
      });
      const sandbox = await open({ workspace: directory, environment, mode: "read-only" });
      await giveToHostUser(directory);
      const attempts: Attempt[] = [
        ["create", `${directory}/state/config.toml`],
        ["rename", `${directory}/state`, `${directory}/moved`],
      ];
      expect(await attempt(sandbox, attempts)).toEqual(["EROFS", "EROFS"]);
    });
  });
});
