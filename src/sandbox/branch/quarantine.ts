import { randomUUID } from "node:crypto";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { errnoOf } from "../../lib/errno.js";
import { makeDirectory } from "../../lib/files/make-directory.js";
import { type HostProcesses, readHostProcesses } from "../../lib/owner.js";
import { type HostGit, hostGit } from "./host-git.js";
import type { HostRepository } from "./host-repository.js";

/**
 * A repository that brig makes for one arrival. It can read the objects of the host's repository, and
 * receives the new ones.
 */
export interface Quarantine extends AsyncDisposable {
  readonly id: string;
  readonly git: HostGit;
  /** The directory in which git puts the packs that it has checked. */
  readonly packs: string;
}

/** The name of the file that says to which directory the packs of a quarantine were to be moved. */
const DESTINATION = "destination";

export interface QuarantinePlace {
  brigHome: string;
  /** The path of git on this machine. */
  program: string;
}

/**
 * Makes a quarantine. brig writes its configuration itself, and copies only the list of shallow commits from
 * the host's repository.
 */
export async function openQuarantine(
  repository: HostRepository,
  { brigHome, program }: QuarantinePlace,
): Promise<Quarantine> {
  const id = randomUUID();
  const { host } = await readHostProcesses(hostname());
  const directory = join(directoryIn(brigHome), `${host}.${process.pid}.${id}`);
  const objects = join(repository.git.directory, "objects");
  try {
    await makeDirectory(join(directory, "objects", "info"), { mode: 0o700 });
    await mkdir(join(directory, "objects", "pack"));
    await mkdir(join(directory, "refs"));
    await writeFile(join(directory, DESTINATION), join(objects, "pack"));
    await writeFile(join(directory, "objects", "info", "alternates"), `${objects}\n`);
    if (repository.shallow !== null) await writeFile(join(directory, "shallow"), repository.shallow);
    await writeFile(join(directory, "config"), configFor(repository));
    await writeFile(join(directory, "HEAD"), "ref: refs/heads/none\n");
  } catch (error) {
    await rm(directory, { recursive: true, force: true });
    throw error;
  }
  return {
    id,
    git: hostGit(directory, { program }),
    packs: join(directory, "objects", "pack"),
    [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true }),
  };
}

function configFor({ format }: HostRepository): string {
  const extension = format === "sha256" ? "[extensions]\n\tobjectFormat = sha256\n" : "";
  const version = format === "sha256" ? 1 : 0;
  return `[core]\n\trepositoryFormatVersion = ${version}\n\tbare = true\n${extension}`;
}

/**
 * The name of a pack while it is copied to the host's repository. `git gc` also removes old files with this
 * prefix.
 */
export function temporaryPack(id: string, extension: string): string {
  return `tmp_brig_${id}${extension}`;
}

/** Removes the quarantines that killed processes of this machine have left, and returns their number. */
export async function removeLeftQuarantines(brigHome: string, processes: HostProcesses): Promise<number> {
  let removed = 0;
  for (const name of await namesIn(directoryIn(brigHome))) {
    const [, host, pid, id = ""] = /^(.+)\.([0-9]{1,10})\.([0-9a-f-]{36})$/.exec(name) ?? [];
    if (host !== processes.host || processes.isAlive(Number(pid))) continue;
    const directory = join(directoryIn(brigHome), name);
    const packs = await readFile(join(directory, DESTINATION), "utf8").catch(() => "");
    if (packs.startsWith("/"))
      for (const extension of [".pack", ".idx", ".rev"])
        await rm(join(packs, temporaryPack(id, extension)), { force: true });
    // Removing may fail at first: the git of a killed brig goes on writing until it notices that its input
    // has ended.
    await rm(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
    removed++;
  }
  return removed;
}

function directoryIn(brigHome: string): string {
  return join(brigHome, "quarantine");
}

async function namesIn(directory: string): Promise<string[]> {
  try {
    return await readdir(directory);
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return [];
    throw error;
  }
}
