import { chmod, mkdir, mkdtemp, readdir, readFile, realpath, rm, stat, writeFile } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readHostProcesses } from "../../../../src/lib/owner.js";
import {
  movePacks,
  openQuarantine,
  type Quarantine,
  removeLeftQuarantines,
  temporaryPack,
} from "../../../../src/sandbox/branch/arrival.js";
import type { HostRepository } from "../../../../src/sandbox/branch/host-repository.js";

let directory = "";

beforeEach(async () => {
  directory = await realpath(await mkdtemp(join(tmpdir(), "brig-host-git-")));
});
afterEach(async () => await rm(directory, { recursive: true }));

const repositoryOf = (given: Partial<HostRepository> = {}) =>
  ({ git: { directory: "/repo/.git" }, format: "sha1", shallow: null, ...given }) as HostRepository;

describe("a quarantine", () => {
  const place = () => ({ brigHome: directory, program: "/usr/bin/git" });
  const quarantines = () => readdir(join(directory, "quarantine"));

  it.each([
    ["sha1", null, "[core]\n\trepositoryFormatVersion = 0\n\tbare = true\n"],
    [
      "sha256",
      Buffer.from("abc\n"),
      "[core]\n\trepositoryFormatVersion = 1\n\tbare = true\n[extensions]\n\tobjectFormat = sha256\n",
    ],
  ] as const)(
    "for %s borrows the objects of the repository, and nothing else of it",
    async (format, shallow, config) => {
      {
        await using quarantine = await openQuarantine(repositoryOf({ format, shallow }), place());
        const [name = ""] = await quarantines();
        const { host } = await readHostProcesses(hostname());
        expect(name).toBe(`${host}.${process.pid}.${quarantine.id}`);
        const at = (path: string) => join(directory, "quarantine", name, path);
        const read = (path: string) => readFile(at(path), "utf8");
        expect(await read("config")).toBe(config);
        expect(await read("HEAD")).toBe("ref: refs/heads/none\n");
        expect(await read("objects/info/alternates")).toBe("/repo/.git/objects\n");
        expect(await read("destination")).toBe("/repo/.git/objects/pack");
        expect(await read("shallow").catch(() => null)).toBe(shallow === null ? null : "abc\n");
        expect((await stat(at("refs"))).isDirectory()).toBe(true);
        expect([quarantine.packs, quarantine.git.directory]).toEqual([at("objects/pack"), at(".")]);
        expect((await stat(at(""))).mode & 0o777).toBe(0o700);
      }
      expect(await quarantines()).toEqual([]);
    },
  );

  it("that cannot be made leaves nothing", async () => {
    const shallow = { toString: () => "x" } as unknown as Buffer;
    await expect(openQuarantine(repositoryOf({ shallow }), place())).rejects.toThrow();
    expect(await quarantines()).toEqual([]);
  });

  it("that a killed process has left is removed with its packs, and no other", async () => {
    const packs = join(directory, "packs");
    await mkdir(packs);
    const id = "00000000-0000-4000-8000-000000000000";
    const processes = { ...(await readHostProcesses(hostname())), isAlive: (pid: number) => pid === 7 };
    const make = async (name: string, destination?: string) => {
      await mkdir(join(directory, "quarantine", name), { recursive: true });
      if (destination !== undefined)
        await writeFile(join(directory, "quarantine", name, "destination"), destination);
    };
    await make(`${processes.host}.8.${id}`, packs);
    await make(`${processes.host}.9.${id}`, "relative");
    await make(`${processes.host}.10.${id}`);
    const kept = [
      `${processes.host}.7.${id}`,
      `other.8.${id}`,
      "something",
      `${processes.host}.8.x`,
    ].toSorted();
    for (const name of kept) await make(name, packs);
    for (const extension of [".pack", ".idx", ".rev", ".keep"])
      await writeFile(join(packs, temporaryPack(id, extension)), "");
    expect(await removeLeftQuarantines(directory, processes)).toBe(3);
    expect((await quarantines()).toSorted()).toEqual(kept);
    expect(await readdir(packs)).toEqual([`tmp_brig_${id}.keep`]);
  });

  it("may be none, and cannot be looked for in what is no directory", async () => {
    const processes = await readHostProcesses(hostname());
    expect(await removeLeftQuarantines(directory, processes)).toBe(0);
    await writeFile(join(directory, "quarantine"), "");
    await expect(removeLeftQuarantines(directory, processes)).rejects.toMatchObject({ code: "ENOTDIR" });
  });
});

describe("checked packs", () => {
  const name = (extension: string) => `pack-0a1b${extension}`;

  async function moving(destination: string) {
    const packs = join(directory, "checked");
    await mkdir(packs);
    await mkdir(destination, { recursive: true });
    for (const extension of [".pack", ".idx", ".rev", ".other"]) {
      await writeFile(join(packs, name(extension)), extension);
      await chmod(join(packs, name(extension)), 0o600);
    }
    for (const other of ["tmp_pack_1.pack", "pack-xyz.idx", "pack-0a.b.pack"])
      await writeFile(join(packs, other), "");
    const quarantine = { id: "1", packs } as Quarantine;
    return {
      move: () => movePacks(quarantine, destination),
      read: (of: string) => readFile(join(destination, of), "utf8"),
    };
  }

  it.each([
    ["the same file system", () => join(directory, "to")],
    ["another one", () => `/dev/shm/brig-packs-${process.pid}`],
  ])("get their names in a repository on %s, for nobody to write", async (_name, at) => {
    const destination = at();
    try {
      const { move, read } = await moving(destination);
      await move();
      expect((await readdir(destination)).toSorted()).toEqual([".idx", ".pack", ".rev"].map(name));
      for (const extension of [".idx", ".pack", ".rev"]) {
        expect(await read(name(extension))).toBe(extension);
        expect((await stat(join(destination, name(extension)))).mode & 0o777).toBe(0o444);
      }
      await move();
    } finally {
      await rm(destination, { recursive: true, force: true });
    }
  });

  it.each([
    ["the same file system", () => join(directory, "to")],
    ["another one", () => `/dev/shm/brig-packs-${process.pid}`],
  ])("do not replace one of the same name on %s", async (_name, at) => {
    const destination = at();
    try {
      const { move, read } = await moving(destination);
      await writeFile(join(destination, name(".pack")), "there");
      await move();
      expect(await read(name(".pack"))).toBe("there");
      expect((await readdir(destination)).some((one) => one.startsWith("tmp_"))).toBe(false);
    } finally {
      await rm(destination, { recursive: true, force: true });
    }
  });

  it("cannot be moved to what is no directory", async () => {
    const { move } = await moving(join(directory, "to"));
    await rm(join(directory, "to"), { recursive: true });
    await expect(move()).rejects.toMatchObject({ code: "ENOENT" });
  });
});
