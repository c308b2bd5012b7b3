import { mkdir, mkdtemp, readdir, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { BrigError } from "../../../../src/errors.js";
import {
  checkDirectory,
  type DirectoryCheck,
  submountsBelow,
} from "../../../../src/sandbox/plan/workspace.js";

let folder: string;

beforeEach(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), "brig-workspace-")));
});
afterEach(async () => await rm(folder, { recursive: true }));

function check(changes: Partial<DirectoryCheck> = {}): DirectoryCheck {
  return {
    purpose: "workspace",
    endpoint: "unix:///var/run/docker.sock",
    dockerRootDir: "/var/lib/docker",
    host: { homeDirectory: join(folder, "home/alice") },
    ...changes,
  };
}

async function refusal(path: string, changes: Partial<DirectoryCheck> = {}): Promise<string> {
  const error = await checkDirectory(path, check(changes)).then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(error, `${path} was accepted`).toBeInstanceOf(BrigError);
  expect(error).toMatchObject({ code: "workspace.invalid", hint: expect.stringMatching(/\w/) });
  return (error as BrigError).message;
}

describe("a workspace", () => {
  it("is resolved and identified", async () => {
    await mkdir(join(folder, "project"));
    await symlink("project", join(folder, "link"));
    const checked = await checkDirectory(join(folder, "link"), check());
    expect(checked.path).toBe(join(folder, "project"));
    expect(checked).toEqual(await checkDirectory(join(folder, "project/../project/"), check()));
    expect(checked.identity.ino).toMatch(/^\d+$/);
  });

  it("that is missing, a file, relative or a loop is refused, each in its own words", async () => {
    await writeFile(join(folder, "file"), "");
    await symlink("loop", join(folder, "loop"));
    await symlink("nowhere", join(folder, "dangling"));
    expect(await refusal(join(folder, "missing"))).toContain("does not exist");
    expect(await refusal(join(folder, "dangling"))).toContain("does not exist");
    expect(await refusal(join(folder, "file"))).toContain("is not a directory");
    expect(await refusal(join(folder, "file/below"))).toContain(
      "leads through something that is not a directory",
    );
    expect(await refusal(join(folder, "loop"))).toContain("loop of symbolic links");
    expect(await refusal("project")).toContain("not an absolute path");
    expect(await refusal("")).toContain("not an absolute path");
    expect(await refusal(`${folder}/a\0b`)).toContain("NUL byte");
    expect(await refusal(`/${"x".repeat(300)}`)).toContain("too long");
  });

  it.each([
    "/",
    "/etc",
    "/etc/ssl",
    "/boot",
    "/dev",
    "/dev/shm",
    "/proc",
    "/proc/self",
    "/sys/fs",
    "/usr",
    "/usr/lib",
  ])("%s is refused", async (path) => {
    expect(await refusal(path)).toContain("may not be the workspace");
  });

  it.each(["/bin", "/sbin", "/lib", "/var", "/var/run", "/run", "/home", "/var/lib", "/root", "/opt"])(
    "%s is refused",
    async (path) => {
      expect(await refusal(path)).toContain("may not be the workspace");
    },
  );

  it("may be a directory of its own almost anywhere else", async () => {
    for (const path of ["project", "home/alice/project", "home/bob"]) {
      await mkdir(join(folder, path), { recursive: true });
      expect((await checkDirectory(join(folder, path), check())).path).toBe(join(folder, path));
    }
    expect((await checkDirectory("/var/tmp", check())).path).toBe("/var/tmp");
  });

  it("may not be the home directory, what holds it, or what holds secrets in it", async () => {
    for (const path of ["home/alice/.ssh/keys", "home/alice/.config/gcloud"])
      await mkdir(join(folder, path), { recursive: true });
    const home = join(folder, "home/alice");
    expect(await refusal(home)).toBe(`"${home}" may not be the workspace`);
    const why = { hint: expect.stringMatching(/is your home directory: everything in it.*-C DIR$/) };
    await expect(checkDirectory(home, check())).rejects.toMatchObject(why);
    await expect(checkDirectory(join(folder, "home"), check())).rejects.not.toMatchObject(why);
    expect(await refusal(join(folder, "home"))).toContain(`it contains ${home}`);
    expect(await refusal(join(home, ".ssh/keys"))).toContain(`it lies inside ${home}/.ssh`);
    expect(await refusal(join(home, ".config"))).toContain(`it contains ${home}/.config/gcloud`);
  });

  it("may not hold brig's or Codex's own directory where a login is kept in it", async () => {
    const own = join(folder, "project/state");
    await mkdir(own, { recursive: true });
    const host = { homeDirectory: null, configDirectories: [own] };
    const project = join(folder, "project");
    expect(await checkDirectory(project, check({ host }))).toMatchObject({ path: project });
    await writeFile(join(own, "auth.json"), "{}");
    expect(await refusal(join(folder, "project"), { host })).toContain(`it contains ${own}`);
    expect(await refusal(own, { host })).toBe(`"${own}" may not be the workspace`);
    await mkdir(join(own, "work"));
    expect(await checkDirectory(join(own, "work"), check({ host }))).toMatchObject({
      path: join(own, "work"),
    });
  });

  it.runIf(process.platform === "linux")("may not be anybody's home directory [needs Linux]", async () => {
    const homes = (await readdir("/home")).map((name) => join("/home", name));
    for (const home of homes) expect(await refusal(home)).toContain("may not be the workspace");
    expect(await refusal("/home")).toContain("may not be the workspace");
  });

  it("is judged by where a link leads, on either side", async () => {
    await mkdir(join(folder, "home/alice"), { recursive: true });
    await mkdir(join(folder, "vault"));
    await symlink(join(folder, "vault"), join(folder, "home/alice/.ssh"));
    await symlink("/etc", join(folder, "innocent"));
    expect(await refusal(join(folder, "innocent"))).toContain('"/etc"');
    expect(await refusal(join(folder, "vault"))).toContain("may not be the workspace");
  });

  it("may not hold the engine's data or socket", async () => {
    await mkdir(join(folder, "engine/data/volumes"), { recursive: true });
    await mkdir(join(folder, "sockets"));
    const data = { dockerRootDir: join(folder, "engine/data") };
    expect(await refusal(join(folder, "engine"), data)).toContain("contains");
    expect(await refusal(join(folder, "engine/data/volumes"), data)).toContain("lies inside");
    const endpoint = `unix://${folder}/sockets/engine.sock`;
    expect(await refusal(join(folder, "sockets"), { endpoint })).toContain("engine.sock");
  });

  it("may have colons, commas, spaces and quotes in its name", async () => {
    const path = join(folder, `a:b,c d'e"f\\g=1`);
    await mkdir(path);
    expect((await checkDirectory(path, check())).path).toBe(path);
  });

  it("with a line break in its name is refused, shown without one", async () => {
    const path = join(folder, "two\nlines");
    await mkdir(path);
    expect(await refusal(path)).toContain("two\\nlines");
  });

  it.runIf(process.platform === "linux")(
    "with a name that is not UTF-8 is refused [needs Linux]",
    async () => {
      const bytes = Buffer.concat([Buffer.from(`${folder}/`), Buffer.from([0x66, 0xff])]);
      await mkdir(bytes);
      await symlink(bytes, join(folder, "link"));
      expect(await refusal(join(folder, "link"))).toContain("not UTF-8");
    },
  );

  it("cannot be checked for an engine on another machine, and that is said", async () => {
    expect(await refusal(folder, { endpoint: "tcp://build.example:2376" })).toContain(
      "runs on another machine",
    );
  });
});

it.each([
  ["unix:///run/docker.sock", false],
  ["npipe:////./pipe/docker_engine", false],
  ["tcp://127.0.0.1:2375", false],
  ["tcp://localhost:2375", false],
  ["http://[::1]:2375", false],
  ["tcp://127.0.0.1.example:2375", true],
  ["tcp://localhost.example:2375", true],
  ["tcp://10.0.0.2:2375", true],
  ["ssh://alice@build", true],
])("the engine at %s is elsewhere: %s", async (endpoint, isRemote) => {
  const path = join(folder, "repo");
  await mkdir(path);
  if (isRemote) expect(await refusal(path, { endpoint })).toContain("runs on another machine");
  else expect((await checkDirectory(path, check({ endpoint }))).path).toBe(path);
});

describe("mounts below a directory", () => {
  const table = [
    "1 0 0:1 / / rw - ext4 /dev/vda rw",
    "2 1 0:2 / /repo rw - ext4 /dev/vdb rw",
    "3 2 0:3 / /repo/with\\040space rw - tmpfs none rw",
    "4 1 0:4 / /repository rw - tmpfs none rw",
    "",
  ].join("\n");

  it("are found by the host's own table, without the directory itself and its neighbours", async () => {
    await mkdir(join(folder, "self"));
    await writeFile(join(folder, "self/mountinfo"), table);
    const found = await submountsBelow("/repo", { homeDirectory: null, procDirectory: folder });
    expect(found.map(({ path }) => path)).toEqual(["/repo/with space"]);
  });

  it("are unknown on a machine without such a table", async () => {
    expect(
      await submountsBelow("/repo", { homeDirectory: null, procDirectory: join(folder, "none") }),
    ).toEqual([]);
  });
});
