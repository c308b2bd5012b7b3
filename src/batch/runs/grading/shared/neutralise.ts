import { posix } from "node:path";
import { BrigError } from "../../../../errors.js";
import type { ContainerChange, FileStat, FileType, Sandbox } from "../../../../sandbox/index.js";
import { containerOf, streamTar } from "../../../../sandbox/index.js";
import { statOf, unlessRefused } from "../../place/file-refusal.js";
import { makeExactly, type NewDirectory } from "../../place/make-directories.js";
import type { Originals } from "./originals.js";
import { StandIns } from "./stand-ins.js";
import { isNamed, type SharedPlaces, type Treatment, treatmentOf } from "./treatment.js";

/** No work consists of so many, and each takes a while. */
const MAX_PUT_BACK = 20_000;
/** More findings than this say nothing more. */
const MAX_FINDINGS = 100;
const DATABASE_MAX_BYTES = 1024 * 1024;
/** Replacement character, which JSON has in place of bytes that are no text. */
const UNREADABLE = "\uFFFD";
const LIBRARY_CACHE = "/etc/ld.so.cache";

/** The kernel's, the engine's and brig's own. */
const notOfTheAgent = /^\/(?:proc|sys|dev|\.brig)(?:\/|$)/;

export interface Neutralising {
  changes: readonly ContainerChange[];
  originals: Originals;
  places: SharedPlaces;
}

/**
 * Puts back what an agent has changed in its container where tests would obey it, and resolves to one sentence for
 * each path. Nothing but brig's runner runs in the container, and no program of the container takes part.
 */
export async function neutralise(sandbox: Sandbox, neutralising: Neutralising): Promise<string[]> {
  const changes = neutralising.changes.toSorted(parentsFirst);
  refuseTooMany(changes, neutralising.places);
  const work = new Neutraliser(sandbox, neutralising);
  for (const change of changes) await work.look(change);
  await work.closeDirectories(neutralising.changes);
  await work.rebuildLibraryCache();
  return work.findings;
}

/** Refuses too many changes. Paths in a directory that is removed are not counted, since they are never looked at. */
function refuseTooMany(changes: readonly ContainerChange[], places: SharedPlaces): void {
  let [count, removed] = [0, ""];
  for (const { path, kind } of changes) {
    if (
      (removed !== "" && path.startsWith(`${removed}/`)) ||
      !/^restore(?:-settings)?$/.test(treatmentOf(path, places) ?? "")
    )
      continue;
    if (kind === "added") removed = path;
    if (++count > MAX_PUT_BACK)
      throw new BrigError(`the agent has changed more than ${MAX_PUT_BACK} files that tests would obey`, {
        code: "file.failed",
      });
  }
}

/** Sorts a directory right before its contents, so that a link in place of a directory is gone before they are restored. */
function parentsFirst(one: ContainerChange, other: ContainerChange): number {
  const [a, b] = [one.path.replaceAll("/", "\0"), other.path.replaceAll("/", "\0")];
  return a < b ? -1 : a > b ? 1 : 0;
}

class Neutraliser {
  readonly findings: string[] = [];
  readonly #sandbox: Sandbox;
  readonly #originals: Originals;
  readonly #places: SharedPlaces;
  readonly #standIns: StandIns;
  /** Directory that was restored together with everything below it. */
  #settled: string | null = null;
  #changesLibraryCache = false;
  readonly #groups = new Set<string>();

  constructor(sandbox: Sandbox, { originals, places, changes }: Neutralising) {
    this.#sandbox = sandbox;
    this.#originals = originals;
    this.#places = places;
    this.#standIns = new StandIns(sandbox, { originals, places, changes });
  }

  async look(change: ContainerChange): Promise<void> {
    const { path } = change;
    if (notOfTheAgent.test(path) || (this.#settled !== null && path.startsWith(`${this.#settled}/`))) return;
    if (await this.#leadsElsewhere(change)) return await this.#putBack(change);
    if (this.#places.programs.includes(path)) return await this.#closeDirectory(change);
    const treatment = treatmentOf(path, this.#places);
    if (treatment === null) return;
    if (!path.includes(UNREADABLE)) await this.#treat(change, treatment);
    else if (putBackUnread.has(treatment)) await this.#putBackAround(path);
  }

  /** The engine does not say the name of a file whose bytes are no text, so the whole directory becomes what it was. */
  async #putBackAround(path: string): Promise<void> {
    const directory = path.slice(0, path.lastIndexOf("/", path.indexOf(UNREADABLE))) || "/";
    const { cwd } = this.#places;
    if (directory === "/" || cwd === directory || cwd.startsWith(`${directory}/`))
      throw new BrigError(`a file that tests would obey has no readable name: ${JSON.stringify(path)}`, {
        code: "file.failed",
      });
    const original = await this.#originals.entry(directory);
    await this.#sandbox.files.remove(directory, { recursive: true, force: true });
    if (original !== null) await this.#copyBack(directory);
    this.#settled = directory;
    this.#found(directory, "had a file whose name is no text, and is put back as a whole");
  }

  /** The tests' programs are found again where the loader looks for their libraries, also those that the agent installed. */
  async rebuildLibraryCache(): Promise<void> {
    if (!this.#changesLibraryCache) return;
    for (const program of ["/sbin/ldconfig", "/usr/sbin/ldconfig"])
      if ((await this.#sandbox.exec([program], { cwd: "/", timeoutMs: 60_000 })).exitCode === 0) return;
  }

  async closeDirectories(changes: readonly ContainerChange[]): Promise<void> {
    const closed = await closeOpenedDirectories(this.#sandbox, { changes, originals: this.#originals });
    for (const path of closed) this.#found(path, "was opened for others, and is closed");
  }

  async #treat(change: ContainerChange, treatment: Treatment): Promise<void> {
    const { path, kind } = change;
    switch (treatment) {
      case "restore":
        return await this.#putBack(change);
      case "restore-old":
        return kind !== "added" || (await this.#standIns.has(path)) ? await this.#putBack(change) : undefined;
      case "keep-users":
        return await this.#keepUsers(path);
      case "restore-program":
        return (await this.#wasProgram(change)) ? await this.#putBack(change) : undefined;
      case "keep-in-repository":
        return (await this.#leavesRepository(path)) ? await this.#putBack(change) : undefined;
      case "restore-settings":
        return (await this.#isSettingsFile(change)) ? await this.#putBack(change) : undefined;
      case "restore-hook":
        return (await this.#isHook(change)) ? await this.#putBack(change) : undefined;
      case "remove-stand-in":
        return (await this.#standIns.hasModule(change)) ? await this.#putBack(change) : undefined;
      case "refuse-plugin":
        return (await this.#isPytestPlugin(path))
          ? await this.#putBack({ ...change, path: posix.dirname(path) })
          : undefined;
      default:
        return treatment satisfies never;
    }
  }

  async #putBack({ path, kind }: ContainerChange): Promise<void> {
    const isDirectory = (await this.#kindOf(path)) === "directory";
    const original = await this.#originals.entry(path, { isOfImage: kind !== "added" });
    // The engine names a directory as changed when something in it is.
    if (kind === "changed" && isDirectory && original?.kind === "directory") return;
    if (path === LIBRARY_CACHE) this.#changesLibraryCache = true;
    await this.#sandbox.files.remove(path, { recursive: true, force: true });
    if (original !== null) await this.#copyBack(path);
    this.#settled = path;
    if (/\/__pycache__(?:\/|$)/.test(path)) return;
    const group = groups.find((directory) => path.startsWith(`${directory}/`));
    if (group === undefined)
      return this.#found(
        path,
        original === null ? "was added, and is removed" : "was changed, and is put back",
      );
    if (!this.#groups.has(group)) this.#found(group, "has what package managers obey, which is as it was");
    this.#groups.add(group);
  }

  async #copyBack(path: string): Promise<void> {
    const archive = await this.#originals.read(path);
    if (archive === null) return;
    const directory = posix.dirname(path);
    await this.#sandbox.files.mkdir(directory, { recursive: true, mode: 0o755 });
    const { engine, containerId } = containerOf(this.#sandbox);
    await engine.putArchive(containerId, directory, archive);
  }

  /** A link where the image has a directory would make everything below it another. */
  async #leadsElsewhere({ path, kind }: ContainerChange): Promise<boolean> {
    if (kind !== "changed" || path.startsWith(`${this.#places.cwd}/`)) return false;
    if ((await this.#kindOf(path)) === "directory") return false;
    return (await this.#originals.entry(path))?.kind === "directory";
  }

  /** Closes a directory of PATH to users who could not put programs there in the image. */
  async #closeDirectory(change: ContainerChange): Promise<void> {
    const original = await this.#originals.entry(change.path);
    if (original?.kind !== "directory" || change.kind === "deleted") {
      // A directory that the image lacks has only programs that are new, which are looked at one by one.
      return original === null ? undefined : await this.#putBack(change);
    }
    const { engine, containerId } = containerOf(this.#sandbox);
    const { mode, uid, gid, modifiedAt } = original;
    const name = posix.basename(change.path);
    const entry = { path: name, kind: "directory", mode, owner: { uid, gid }, modifiedAt } as const;
    await engine.putArchive(containerId, posix.dirname(change.path), streamTar([entry]));
  }

  /** A hidden directory of a home has settings in it, and other things besides. */
  async #isSettingsFile({ path, kind }: ContainerChange): Promise<boolean> {
    if (isNamed(path, this.#places)) return false;
    const isHidden = /^\.(?!config$)/.test(posix.basename(path)) && kind !== "deleted";
    return !isHidden || (await this.#kindOf(path)) !== "directory";
  }

  async #isHook({ path, kind }: ContainerChange): Promise<boolean> {
    if (isNamed(path, this.#places)) return false;
    if (kind !== "added" && (await this.#wasProgram({ path, kind }))) return true;
    const stat = await statOf(this.#sandbox, path);
    if (stat?.type === "symlink") return true;
    if (stat?.type !== "file" || (stat.mode & 0o111) === 0) return false;
    return /^(?:#!|\u007fELF)/.test((await this.#textOf(path)) ?? "#!");
  }

  async #keepUsers(path: string): Promise<void> {
    const [image, now] = [await this.#originals.text(path), await this.#textOf(path)];
    if (image === null) return;
    const text = now === null ? image : withNumbersOf(image, now);
    if (text === now) return;
    await this.#sandbox.files.remove(path, { recursive: true, force: true });
    const content = Buffer.from(text);
    const whole = async function* () {
      yield content;
    };
    const { engine, containerId } = containerOf(this.#sandbox);
    const entry = {
      path: posix.basename(path),
      kind: "file",
      mode: 0o644,
      sizeBytes: content.length,
    } as const;
    await engine.putArchive(containerId, posix.dirname(path), streamTar([{ ...entry, content: whole }]));
    this.#found(path, "gave users of the image other numbers, which are put back");
  }

  async #wasProgram({ path, kind }: ContainerChange): Promise<boolean> {
    const original = kind === "added" ? null : await this.#originals.entry(path);
    return original?.kind === "file" && (original.mode & 0o111) !== 0;
  }

  /** Then its settings would be somewhere else, where nobody looks for them. */
  async #leavesRepository(path: string): Promise<boolean> {
    const kind = await this.#kindOf(path);
    if (kind !== "file") return kind !== null && kind !== "directory";
    const name = posix.basename(path);
    if (name !== ".git" && name !== "commondir") return false;
    const target = ((await this.#textOf(path)) ?? "").replace(/^gitdir:/, "").trim();
    return !/\/\.git(?:\/|$)/.test(posix.resolve(posix.dirname(path), target));
  }

  async #isPytestPlugin(path: string): Promise<boolean> {
    return /\[\s*pytest11\s*\]/.test((await this.#textOf(path)) ?? "");
  }

  /** Null for what is no regular file, or a large one. */
  async #textOf(path: string): Promise<string | null> {
    const read = this.#sandbox.files.read(path, { maxBytes: DATABASE_MAX_BYTES });
    return (await unlessRefused(read))?.toString("utf8") ?? null;
  }

  async #kindOf(path: string): Promise<FileType | null> {
    return (await statOf(this.#sandbox, path))?.type ?? null;
  }

  #found(path: string, what: string): void {
    if (this.findings.length < MAX_FINDINGS) this.findings.push(`${JSON.stringify(path)} ${what}`);
    else if (this.findings.length === MAX_FINDINGS)
      this.findings.push("more was put back than is listed here");
  }
}

/** Treatments that restore a path without reading it. A file without a readable name makes them restore its whole directory. */
const putBackUnread: ReadonlySet<Treatment> = new Set([
  "restore",
  "restore-settings",
  "restore-hook",
  "refuse-plugin",
]);

/** Directories in which installing packages leaves so many files that one finding stands for all of them. */
const groups = ["/var/lib/dpkg/info", "/var/lib/apt/lists", "/var/cache/apt/archives"];

/**
 * Returns /etc/passwd or /etc/group as it is now, but with the image's numbers for every user or group of the image.
 * Entries that the agent has added stay.
 */
export function withNumbersOf(image: string, now: string): string {
  const original = new Map(entriesOf(image).map((fields) => [fields[0], fields]));
  const kept = entriesOf(now).map((fields) => {
    const own = original.get(fields[0]);
    original.delete(fields[0]);
    return own === undefined ? fields : withNumbers(fields, own);
  });
  return [...kept, ...original.values()].map((fields) => `${fields.join(":")}\n`).join("");
}

/**
 * The third field of a line is the number of the user or group. In passwd, the fourth is the number of the user's group.
 * Root gets the image's whole line, because the tests use root's home and shell.
 */
function withNumbers(fields: readonly string[], own: readonly string[]): string[] {
  const isRootUser = own.length > 4 && own[2] === "0";
  if (isRootUser) return [...own];
  const numbers = own.length > 4 ? [2, 3] : [2];
  return fields.map((field, index) => (numbers.includes(index) ? (own[index] ?? field) : field));
}

/** The first line of a name is the one that counts. */
function entriesOf(text: string): string[][] {
  const names = new Set<string>();
  return text
    .split("\n")
    .map((line) => line.split(":"))
    .filter(([name = ""]) => name !== "" && !names.has(name) && names.add(name));
}

/** The root directory, and those of programs, libraries and settings. What is deeper in /etc may belong to services. */
const ofSystem = /^\/(?:(?:usr|lib\d*|s?bin)(?:\/.*)?|etc)?$/;
const WRITE_FOR_OTHERS = 0o022;
const STICKY = 0o1000;
const ROOT = { uid: 0, gid: 0 };
/** The engine takes a while to say what a directory was. */
const MAX_LOOKUPS = 200;

/**
 * Closes directories of the system that the agent has opened for other users than root: code of the agent that the tests
 * run as such a user could otherwise put other programs, or other tests, in the place of those there. Resolves to the paths.
 */
async function closeOpenedDirectories(
  sandbox: Sandbox,
  { changes, originals }: { changes: readonly ContainerChange[]; originals: Originals },
): Promise<string[]> {
  const changed = changes.filter(({ kind, path }) => kind !== "deleted" && ofSystem.test(path));
  const closed: NewDirectory[] = [];
  let lookups = 0;
  const hasOpenRoot = await closeRoot(sandbox);
  for (const { path } of changed) {
    const stat = await statOf(sandbox, path);
    if (stat?.type !== "directory" || !isOpen(stat)) continue;
    const isForAll = (stat.mode & 0o002) !== 0;
    const original = isForAll || lookups++ >= MAX_LOOKUPS ? null : await originals.entry(path);
    const wanted =
      original?.kind === "directory"
        ? { mode: original.mode & 0o7777, owner: { uid: original.uid, gid: original.gid } }
        : { mode: stat.mode & 0o7777 & ~WRITE_FOR_OTHERS, owner: ROOT };
    if (!isSame(stat, wanted)) closed.push({ path, ...wanted });
  }
  await makeExactly(sandbox, closed);
  return [...(hasOpenRoot ? ["/"] : []), ...closed.map(({ path }) => path)];
}

/** The engine neither names the root directory nor changes it. The image's own program, which is put back by now, does. */
async function closeRoot(sandbox: Sandbox): Promise<boolean> {
  const before = await statOf(sandbox, "/");
  if (before === null || !isOpen(before)) return false;
  for (const argv of [
    ["/bin/chown", "0:0", "/"],
    ["/bin/chmod", "755", "/"],
  ])
    await sandbox.exec(argv, { cwd: "/", timeoutMs: 60_000 });
  const after = await statOf(sandbox, "/");
  if (after !== null && !isOpen(after)) return true;
  throw new BrigError("the root directory is open to everybody, and cannot be closed", {
    code: "file.failed",
  });
}

function isOpen({ mode, uid }: FileStat): boolean {
  return uid !== 0 || ((mode & WRITE_FOR_OTHERS) !== 0 && (mode & STICKY) === 0);
}

function isSame({ mode, uid, gid }: FileStat, wanted: Omit<NewDirectory, "path">): boolean {
  return (mode & 0o7777) === wanted.mode && uid === wanted.owner.uid && gid === wanted.owner.gid;
}
