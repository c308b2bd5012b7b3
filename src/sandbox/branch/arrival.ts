import { randomUUID } from "node:crypto";
import {
  chmod,
  constants,
  copyFile,
  link,
  mkdir,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  writeFile,
} from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { errnoOf } from "../../lib/errno.js";
import { makeDirectory } from "../../lib/files/make-directory.js";
import { namesIn } from "../../lib/files/names-in.js";
import { type HostProcesses, readHostProcesses } from "../../lib/owner.js";
import { type HostGit, hostGit, reasonOf, refused } from "./host-git.js";
import type { HostRepository } from "./host-repository.js";

/** Commits that a sandbox sends. Nothing in them can be trusted. */
export interface SentCommits {
  /** The id of the newest commit. */
  tip: string;
  /**
   * A pack with every object that the host does not have. It may contain deltas whose bases only the host
   * has.
   */
  pack: AsyncIterable<Uint8Array>;
}

export interface ArrivalOptions extends QuarantinePlace {
  /** The branch's full name. */
  ref: string;
  /** The commit that an earlier arrival wrote to the branch; null if there was none. */
  previous: string | null;
  maxBytes?: number | undefined;
}

export interface Arrived {
  /** The number of commits that could not be reached from any ref before. If it is 0, nothing was written. */
  commits: number;
}

const MAX_PACK_BYTES = 2 * 1024 * 1024 * 1024;
const HEADER_BYTES = 12;

/**
 * Checks every object in a quarantine, moves the objects to the repository, and then writes one ref. If this
 * process is killed meanwhile, the ref is either as before or complete. Error: `branch.refused` with the
 * reason; no ref has changed then.
 */
export async function receiveCommits(
  repository: HostRepository,
  sent: SentCommits,
  options: ArrivalOptions,
): Promise<Arrived> {
  const tip = checkedId(sent.tip, repository);
  await using quarantine = await openQuarantine(repository, options);
  const known = await knownObjects(quarantine, repository);
  const hasObjects = await indexPack(quarantine, sent.pack, options);
  await requireCommit(quarantine, tip);
  await requireConnected(quarantine, { tip, known });
  const commits = await countCommits(quarantine, { tip, known });
  if (commits === 0) return { commits };
  if (hasObjects) await movePacks(quarantine, join(repository.git.directory, "objects", "pack"));
  await writeRef(repository, { ...options, tip });
  return { commits };
}

function checkedId(id: string, { format }: HostRepository): string {
  if ((format === "sha1" ? /^[0-9a-f]{40}$/ : /^[0-9a-f]{64}$/).test(id)) return id;
  throw refused(`the sandbox named ${JSON.stringify(id.slice(0, 80))} as its newest commit, which is no id`);
}

/**
 * The objects that the refs of the repository point to. Left out are broken refs, whose object does not
 * exist.
 */
async function knownObjects({ git }: Quarantine, { refs }: HostRepository): Promise<string[]> {
  const ids = [...new Set(refs.map(({ id }) => id))];
  const result = await git.run(["cat-file", "--batch-check=%(objectname) %(objecttype)"], {
    input: Buffer.from(ids.map((id) => `${id}\n`).join("")),
  });
  const lines = result.stdout.toString("utf8").split("\n");
  return lines.flatMap((line) => /^([0-9a-f]+) (?:commit|tag)$/.exec(line)?.[1] ?? []);
}

/** Returns whether the pack has any object. Each one is checked as `git fsck` would check it. */
async function indexPack(
  { git }: Quarantine,
  pack: AsyncIterable<Uint8Array>,
  { maxBytes = MAX_PACK_BYTES }: ArrivalOptions,
): Promise<boolean> {
  const header: Buffer[] = [];
  let bytes = 0;
  const counted = async function* () {
    for await (const piece of pack) {
      if (bytes < HEADER_BYTES) header.push(Buffer.from(piece));
      bytes += piece.length;
      if (bytes > maxBytes)
        throw refused(
          `the new commits have more than ${Math.floor(maxBytes / 1024 / 1024)} MiB`,
          "commit less, for example without built files",
        );
      yield piece;
    }
  };
  const result = await git.run(["index-pack", "--stdin", "--fix-thin", "--strict", "--threads=1"], {
    input: counted(),
  });
  if (isEmptyPack(Buffer.concat(header))) return false;
  if (result.exitCode === 0) return true;
  throw refused(`the objects from the sandbox were refused: ${reasonOf(result)}`, UNCHANGED);
}

const UNCHANGED = "nothing of it was taken; the repository of this machine is unchanged";

function isEmptyPack(header: Buffer): boolean {
  return (
    header.length >= HEADER_BYTES &&
    header.toString("latin1", 0, 4) === "PACK" &&
    header.readUInt32BE(8) === 0
  );
}

async function requireCommit({ git }: Quarantine, tip: string): Promise<void> {
  const result = await git.run(["cat-file", "-t", tip]);
  const type = result.stdout.toString("utf8").trim();
  if (result.exitCode !== 0) throw refused(`the sandbox did not send the commit ${tip}`, UNCHANGED);
  if (type !== "commit")
    throw refused(`${tip}, which the sandbox named as its newest commit, is a ${type}`, UNCHANGED);
}

interface History {
  tip: string;
  known: readonly string[];
}

async function requireConnected({ git }: Quarantine, { tip, known }: History): Promise<void> {
  const input = Buffer.from([tip, ...known.map((id) => `^${id}`), ""].join("\n"));
  const result = await git.run(["rev-list", "--objects", "--quiet", "--stdin"], { input });
  if (result.exitCode === 0) return;
  throw refused(`the commits from the sandbox are not complete: ${reasonOf(result)}`, UNCHANGED);
}

async function countCommits({ git }: Quarantine, { tip, known }: History): Promise<number> {
  const input = Buffer.from([tip, ...known.map((id) => `^${id}`), ""].join("\n"));
  const result = await git.run(["rev-list", "--count", "--stdin"], { input });
  const count = Number(result.stdout.toString("utf8").trim());
  if (result.exitCode === 0 && Number.isSafeInteger(count)) return count;
  throw refused(`the commits from the sandbox cannot be counted: ${reasonOf(result)}`, UNCHANGED);
}

async function writeRef(
  { git, format, silencing }: HostRepository,
  { ref, tip, previous }: Pick<ArrivalOptions, "ref" | "previous"> & { tip: string },
): Promise<void> {
  const absent = "0".repeat(format === "sha1" ? 40 : 64);
  const result = await git.run(["update-ref", "--no-deref", ref, tip, previous ?? absent], {
    settings: silencing,
  });
  if (result.exitCode === 0) return;
  throw refused(`the branch ${JSON.stringify(ref)} cannot be written: ${reasonOf(result)}`, UNCHANGED);
}

/**
 * Error: `branch.refused` if the branch could not be written, for a reason that does not depend on the
 * commits.
 */
export function requireFreeRef(
  { refs }: Pick<HostRepository, "refs">,
  { ref, previous }: Pick<ArrivalOptions, "ref" | "previous">,
): void {
  const parts = ref.split("/");
  const above = parts.map((_, at) => parts.slice(0, at).join("/"));
  const inTheWay = refs.find(({ name }) => above.includes(name) || name.startsWith(`${ref}/`));
  if (inTheWay !== undefined) {
    const branch = inTheWay.name.replace(/^refs\/heads\//, "");
    throw refused(
      `the branch ${JSON.stringify(branch)} is in the way of ${JSON.stringify(ref)}`,
      `rename it: git branch -m ${branch} NAME`,
    );
  }
  const current = refs.find(({ name }) => name === ref)?.id ?? null;
  if (current !== previous)
    throw refused(
      current === null
        ? `the branch ${JSON.stringify(ref)} was deleted meanwhile`
        : `the branch ${JSON.stringify(ref)} exists already`,
      "rename it, or remove it with: git branch -D",
    );
}

/** The index comes last, because git uses a pack as soon as its index exists. */
const ORDER = [".pack", ".rev", ".idx"];

/** Moves the checked packs to the host's repository. Throws the file system's own errors. */
export async function movePacks({ id, packs }: Quarantine, destination: string): Promise<void> {
  const names = await readdir(packs);
  for (const extension of ORDER)
    for (const name of names.filter((one) => /^pack-[0-9a-f]+\.[a-z]+$/.test(one) && one.endsWith(extension)))
      await place(
        join(packs, name),
        join(destination, name),
        join(destination, temporaryPack(id, extension)),
      );
  await sync(destination);
}

/**
 * Gives a pack its name in the repository. If that name is taken, nothing is to be done: git names packs by
 * their content.
 */
async function place(from: string, to: string, temporary: string): Promise<void> {
  await chmod(from, 0o444);
  await sync(from);
  try {
    await link(from, to);
    return;
  } catch (error) {
    if (errnoOf(error) === "EEXIST") return;
    // There cannot be a hard link, most likely because the two are on different file systems.
    if (!["EXDEV", "EPERM", "EMLINK", "ENOTSUP", "EACCES"].includes(errnoOf(error) ?? "")) throw error;
  }
  try {
    await copyFile(from, temporary, constants.COPYFILE_EXCL);
    await chmod(temporary, 0o444);
    await sync(temporary);
    if ((await stat(to).catch(() => null)) === null) await rename(temporary, to);
  } finally {
    await rm(temporary, { force: true });
  }
}

async function sync(path: string): Promise<void> {
  await using file = await open(path, constants.O_RDONLY);
  await file.sync();
}

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
