import { dirname, resolve } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { BrigError } from "../../errors.js";
import { directoriesAbove, isAtOrBelow } from "../plan/paths.js";
import type { KnownDirectory } from "../plan/plan.js";
import {
  type BytePath,
  fromBytePath,
  isHardLinked,
  listNames,
  lstatOrNull,
  quoteBytePath,
  readSmallFile,
  toBytePath,
} from "./byte-paths.js";
import { type FoundRepositories, findRepositories } from "./find-repositories.js";
import { type HardLinkedFile, parseAlternates, readGitDirectory, readPointer } from "./git-directory.js";
import { type GitIndex, parseGitIndex } from "./git-index.js";
import { cannotProtect, type ProtectedPath, ProtectedSet } from "./protected-set.js";
import {
  type ConfigPath,
  configOf,
  type RepositoryConfig,
  readRepositoryConfig,
} from "./repository-config.js";
import type { UserGitConfig } from "./user-config.js";

export interface GitPathRequest {
  writable: readonly string[];
  /** Paths protected anyway; `.git` at the top of each writable directory is one, existing or not. */
  protectedPaths: readonly ProtectedPath[];
  homeDirectory: string | null;
  /** Absolute paths of a `.git` or a bare repository that need not be protected where that is not possible. */
  unprotected?: readonly string[] | undefined;
  /** The configuration that applies to every repository; undefined if there is none. */
  userConfig?: UserGitConfig | undefined;
  /** Called with each directory whose name makes something obeyed that is in it. */
  onTelling?: ((directory: KnownDirectory) => void) | undefined;
}

const INDEX_MAX_BYTES = 1024 * 1024 * 1024;
/** Far more than the five levels that git itself follows. */
const MAX_ALTERNATES = 1000;
const USER_CONFIG = "git's own configuration of this user";

/**
 * Finds every path in the writable directories whose content git on the host would obey, so that all of them
 * can be mounted read-only. Git may be started in a writable directory, in a directory above it, or in a
 * repository inside it. Included are:
 *
 * - each `.git`, also that of a submodule that is not checked out yet, and each bare repository;
 * - what these refer to: the repository behind a `.git` file, included configuration files, `core.hooksPath`,
 *   programs named by settings, alternate object directories, and the targets of symbolic links;
 * - what the user's and the machine's own configuration refers to, in each work tree.
 *
 * Changes nothing and runs nothing. Returns the paths that were protected anyway as well. Errors:
 * `policy.not-enforced` for a path that cannot be protected, `workspace.invalid` for a tree that cannot be
 * searched.
 */
export async function findGitPaths(request: GitPathRequest): Promise<ProtectedPath[]> {
  const writable = request.writable.map(toBytePath);
  const known = request.protectedPaths.map(({ path, ...rest }) => ({ path: toBytePath(path), ...rest }));
  const home = request.homeDirectory === null ? null : toBytePath(request.homeDirectory);
  const found = new ProtectedSet(writable, known, request.unprotected?.map(toBytePath));
  const search = new GitPathSearch(found, { writable, home, userConfig: request.userConfig });
  await search.run();
  for (const path of search.telling) noteTelling(path, request.onTelling);
  return found.all.map(({ path, ...rest }) => {
    const text = fromBytePath(path);
    if (text === null) throw cannotProtect(path, "its path is not UTF-8, which the engine's API needs");
    return { path: text, ...rest };
  });
}

function noteTelling(path: BytePath, onTelling: GitPathRequest["onTelling"]): void {
  const [text, stat] = [fromBytePath(path), lstatOrNull(path)];
  if (text !== null && stat !== null) onTelling?.({ path: text, ino: String(stat.ino) });
}

interface SearchOptions extends Pick<GitPathRequest, "userConfig"> {
  writable: readonly BytePath[];
  home: BytePath | null;
}

class GitPathSearch {
  readonly telling: BytePath[] = [];
  readonly #found: ProtectedSet;
  readonly #writable: readonly BytePath[];
  readonly #configs: ConfigFiles;
  /** The paths that the user's own configuration names. */
  readonly #userPaths: readonly ConfigPath[];
  /** Keys of work tree and git directory together, since several repositories may share either of them. */
  readonly #readRepositories = new Set<string>();
  readonly #workTrees = new Set<BytePath>();
  readonly #walked = new Set<BytePath>();
  readonly #hardLinked: HardLinkedFile[] = [];
  /** HEAD files under version control: the bare repository around one is somebody's test data. */
  readonly #trackedHeads = new Set<BytePath>();

  constructor(found: ProtectedSet, { writable, home, userConfig }: SearchOptions) {
    this.#found = found;
    this.#writable = writable;
    this.#configs = new ConfigFiles(found, home);
    this.#userPaths = userConfig === undefined ? [] : this.#configs.userPaths(userConfig);
  }

  async run(): Promise<void> {
    const outside = this.#userPaths.filter(({ isInWorkTree }) => !isInWorkTree);
    this.#followPaths(outside, { workTrees: [], from: USER_CONFIG });
    const above = new Set(this.#writable.flatMap((root) => [root, ...directoriesAbove(root)]));
    for (const directory of above) this.#followDotGit(directory === "/" ? "/.git" : `${directory}/.git`);
    await nextTurn();
    const { dotGits, bare } = await this.#findRepositories();
    for (const dotGit of dotGits) this.#found.followFrom(dotGit, () => this.#found.protect(dotGit));
    for (const dotGit of dotGits) this.#followDotGit(dotGit);
    for (const directory of bare) {
      if (this.#trackedHeads.has(`${directory}/HEAD`)) continue;
      this.#found.protect(directory);
      this.#found.followFrom(directory, () => this.#readRepository(null, directory));
    }
    // A repository may be made there later.
    for (const root of this.#writable) if (!this.#isInRepository(root)) this.#followUserSettings(root);
    for (const { path } of this.#found.all) this.#collectHardLinks(path);
    await refuseHardLinks(this.#hardLinked, this.#writable, (path) => this.#found.isWritable(path));
  }

  #followUserSettings(workTree: BytePath): void {
    const inWorkTree = this.#userPaths.filter(({ isInWorkTree }) => isInWorkTree);
    this.#followPaths(inWorkTree, { workTrees: [workTree], from: USER_CONFIG });
  }

  #isInRepository(root: BytePath): boolean {
    return [root, ...directoriesAbove(root)].some((directory) => this.#workTrees.has(directory));
  }

  async #findRepositories(): Promise<Omit<FoundRepositories, "telling">> {
    const isOpen = (path: BytePath) => this.#found.isWritable(path) && !this.#writable.includes(path);
    const all: Omit<FoundRepositories, "telling"> = { dotGits: [], bare: [] };
    for (const root of this.#writable) {
      const { dotGits, bare, telling } = await findRepositories(root);
      this.telling.push(...telling);
      all.dotGits.push(...dotGits.filter(isOpen));
      all.bare.push(...bare.filter(isOpen));
    }
    return all;
  }

  #followDotGit(dotGit: BytePath): void {
    this.#found.followFrom(dotGit, () => this.#readDotGit(dotGit));
  }

  /** A `.git` is the git directory itself, or a file with its path. */
  #readDotGit(dotGit: BytePath): void {
    const stat = lstatOrNull(dotGit);
    const directory = stat?.isFile() ? this.#followGitFile(dotGit) : stat && dotGit;
    if (directory !== null) this.#readRepository(dirname(dotGit), directory);
  }

  #followGitFile(dotGit: BytePath): BytePath | null {
    const target = /^gitdir: ([\s\S]+?)[\r\n]*$/.exec(readPointer(dotGit) ?? "")?.[1];
    if (target === undefined) return null;
    const isTop = this.#writable.includes(dirname(dotGit));
    const whenAbsent = isTop ? "refuse" : "protect";
    return this.#found.follow({ path: resolve(dirname(dotGit), target), from: dotGit, whenAbsent });
  }

  #readRepository(workTree: BytePath | null, directory: BytePath): void {
    const key = `${workTree}\0${directory}`;
    if (this.#readRepositories.has(key)) return;
    this.#readRepositories.add(key);
    const common = this.#commonDirectory(directory);
    const configs = [
      ...this.#configs.read(`${common}/config`),
      ...this.#configs.read(`${common}/config.worktree`),
      ...(common === directory ? [] : this.#configs.read(`${directory}/config.worktree`)),
    ];
    const configured = configs.findLast((config) => config.workTree !== null)?.workTree;
    const workTrees = [...new Set([workTree, configured && resolve(directory, configured)])].filter(
      (tree) => typeof tree === "string",
    );
    this.#followPaths(
      configs.flatMap(({ paths }) => paths),
      { workTrees: workTrees.length === 0 ? [directory] : workTrees, from: `${common}/config` },
    );
    for (const tree of workTrees) {
      this.#workTrees.add(tree);
      this.#followUserSettings(tree);
    }
    this.#followAlternates(`${common}/objects`);
    this.#walk(directory);
    this.#walk(common);
    const hashBytes = configs.some(({ usesSha256 }) => usesSha256) ? 32 : 20;
    for (const index of this.#readIndexes(directory, hashBytes))
      for (const tree of workTrees) this.#readTracked(tree, index);
  }

  #commonDirectory(directory: BytePath): BytePath {
    const file = `${directory}/commondir`;
    const pointer = readPointer(file);
    if (pointer === null) return directory;
    const target = resolve(directory, pointer.replace(/[\r\n]+$/, ""));
    return this.#found.follow({ path: target, from: file, whenAbsent: "refuse" }) ?? directory;
  }

  #followPaths(
    paths: readonly ConfigPath[],
    { workTrees, from }: { workTrees: readonly BytePath[]; from: BytePath },
  ): void {
    for (const { path, kind, isInWorkTree } of paths) {
      if (kind === "include") continue;
      for (const named of isInWorkTree ? workTrees.map((tree) => `${tree}/${path}`) : [path]) {
        // No program is a directory that a command works in.
        if (kind !== "hooks" && this.#writable.some((root) => isAtOrBelow(root, resolve(named)))) continue;
        const isArgument = kind === "argument";
        const target = this.#found.follow({
          path: named,
          from,
          whenAbsent: isArgument ? "ignore" : "protect",
          onlyFiles: isArgument,
        });
        if (kind === "hooks" && target !== null) this.#walk(target);
      }
    }
  }

  #followAlternates(objects: BytePath): void {
    const open = [objects];
    const known = new Set(open);
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      const file = `${next}/info/alternates`;
      for (const line of parseAlternates(readPointer(file) ?? "")) {
        const target = this.#found.follow({ path: resolve(next, line), from: file, whenAbsent: "protect" });
        if (target === null || known.has(target) || known.size > MAX_ALTERNATES) continue;
        known.add(target);
        open.push(target);
        this.#walk(target);
      }
    }
  }

  #collectHardLinks(path: BytePath): void {
    if (this.#isWalked(path)) return;
    const contents = this.#found.ifReadable(path, () => readGitDirectory(path));
    this.#hardLinked.push(...(contents?.hardLinked ?? []));
  }

  /** Collects hard-linked files, follows symbolic links, and reads the repositories of submodules. */
  #walk(directory: BytePath): void {
    if (this.#isWalked(directory) || lstatOrNull(directory)?.isDirectory() !== true) return;
    this.#walked.add(directory);
    const contents = this.#found.ifReadable(directory, () => readGitDirectory(directory));
    if (contents === null) return;
    this.#hardLinked.push(...contents.hardLinked);
    for (const link of contents.links) {
      const target = this.#found.follow({ path: link, from: link, whenAbsent: "protect", isFile: true });
      if (target !== null && this.#found.isInWritable(target)) this.#walk(target);
    }
    for (const repository of contents.repositories)
      if (repository !== directory) this.#readRepository(null, repository);
  }

  #isWalked(path: BytePath): boolean {
    return [...this.#walked].some((walked) => isAtOrBelow(path, walked));
  }

  #readIndexes(directory: BytePath, hashBytes: number): GitIndex[] {
    const index = this.#readIndex(`${directory}/index`, hashBytes);
    if (index === null) return [];
    const shared =
      index.sharedIndex === null ? null : this.#readIndex(`${directory}/${index.sharedIndex}`, hashBytes);
    return shared === null ? [index] : [index, shared];
  }

  #readIndex(file: BytePath, hashBytes: number): GitIndex | null {
    const bytes = this.#found.ifReadable(file, () => readSmallFile(file, INDEX_MAX_BYTES));
    if (bytes === null) return null;
    const index = typeof bytes === "string" ? null : parseGitIndex(bytes, hashBytes);
    if (index?.isSparse)
      throw cannotProtect(
        file,
        "it is sparse and does not list every submodule; `git sparse-checkout reapply --no-sparse-index` repairs it",
      );
    if (index !== null || (typeof bytes !== "string" && bytes.length === 0)) return index;
    throw cannotProtect(file, "it is not a readable index, so the places of submodules are unknown");
  }

  #readTracked(workTree: BytePath, { gitlinks, heads }: GitIndex): void {
    for (const head of heads) this.#trackedHeads.add(`${workTree}/${head}`);
    for (const gitlink of gitlinks) {
      const path = resolve(workTree, gitlink);
      if (this.#found.isWritable(path) && isAtOrBelow(path, workTree)) this.#protectSubmodule(path);
    }
  }

  /** Git enters a submodule without being asked to, so a command must not decide what it finds there. */
  #protectSubmodule(path: BytePath): void {
    const obstacle = this.#found.firstNonDirectory(path);
    if (obstacle !== null) return void this.#found.protect(obstacle);
    const dotGit = `${path}/.git`;
    if (listNames(path).length === 0) this.#found.protect(path);
    else if (this.#found.isWritable(dotGit)) {
      this.#found.protect(dotGit);
      this.#readDotGit(dotGit);
    }
  }
}

const CONFIG_MAX_BYTES = 1024 * 1024;
/** Far more than the ten levels of includes that git itself follows. */
const MAX_FILES = 1000;

/** Reads configuration of git, and protects what it includes. */
class ConfigFiles {
  readonly #found: ProtectedSet;
  readonly #home: BytePath | null;

  constructor(found: ProtectedSet, home: BytePath | null) {
    this.#found = found;
    this.#home = home;
  }

  /** The file, if it exists, and all that it includes. */
  read(file: BytePath): RepositoryConfig[] {
    const configs: RepositoryConfig[] = [];
    const open = [{ path: file, from: file }];
    const known = new Set([file]);
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      const bytes = this.#readFile(next.path, next.from);
      if (bytes === null) continue;
      if (known.size > MAX_FILES) throw cannotProtect(file, "it includes more files than git would follow");
      const config = readRepositoryConfig(bytes, { directory: dirname(next.path), home: this.#home });
      configs.push(config);
      for (const { kind, path } of config.paths) {
        if (kind !== "include" || known.has(path)) continue;
        known.add(path);
        open.push({ path, from: next.path });
      }
    }
    return configs;
  }

  /**
   * The paths that configuration for every repository names. Only a value that looks like a path counts as one there: a word
   * such as "log" or "vim" would else keep every file of that name from being changed.
   */
  userPaths({ files, settings }: UserGitConfig): ConfigPath[] {
    const inFiles = files.flatMap((file) => this.read(toBytePath(file)));
    const inVariables = configOf(settings, { directory: "/", home: this.#home });
    return [...inFiles, inVariables]
      .flatMap(({ paths }) => paths)
      .filter(({ kind, path }) => kind !== "argument" || path.includes("/") || /\.[0-9A-Za-z]+$/.test(path));
  }

  #readFile(path: BytePath, from: BytePath): Buffer | null {
    const target = this.#found.follow({ path, from, whenAbsent: "protect", isFile: true });
    if (target === null) return null;
    const bytes = this.#found.ifReadable(target, () => readSmallFile(target, CONFIG_MAX_BYTES));
    if (typeof bytes !== "string") return bytes;
    // Many name a file such as /dev/null where there is to be no configuration.
    if (bytes === "irregular" && !this.#found.isInWritable(target)) return null;
    throw cannotProtect(from, "it is not a small regular file, or does not lead to one");
  }
}

const MAX_BLOCKED_MS = 10;

/**
 * Refuses protected files that have another name in a writable directory: a read-only mount over one name
 * does not keep a command from writing through the other. Searches the writable directories, which takes a
 * second for 200 000 files, only if one of the files has more names than `files` lists. Error:
 * `workspace.invalid` with both names.
 */
export async function refuseHardLinks(
  files: readonly HardLinkedFile[],
  writable: readonly BytePath[],
  isWritable: (path: BytePath) => boolean,
): Promise<void> {
  const sought = new Map<string, HardLinkedFile>();
  const paths = new Map<string, Set<BytePath>>();
  for (const file of files) paths.set(file.file, (paths.get(file.file) ?? new Set()).add(file.path));
  for (const file of files)
    if ((paths.get(file.file)?.size ?? 0) < file.linkCount) sought.set(file.file, file);
  if (sought.size === 0) return;
  let sliceEnd = performance.now() + MAX_BLOCKED_MS;
  const open = [...writable];
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    if (performance.now() >= sliceEnd) {
      await nextTurn();
      sliceEnd = performance.now() + MAX_BLOCKED_MS;
    }
    if (isWritable(path)) searchDirectory(path, { sought, open, isWritable });
  }
}

interface Search {
  sought: ReadonlyMap<string, HardLinkedFile>;
  open: BytePath[];
  isWritable(path: BytePath): boolean;
}

function searchDirectory(path: BytePath, { sought, open, isWritable }: Search): void {
  for (const entry of namesIn(path)) {
    const child = `${path}/${entry.name}`;
    if (entry.isDirectory()) open.push(child);
    if (!entry.isFile() || !isHardLinked(child)) continue;
    const stat = lstatOrNull(child);
    const other = stat === null ? undefined : sought.get(`${stat.dev}:${stat.ino}`);
    if (other !== undefined && isWritable(child)) throw hardLinked(other.path, child);
  }
}

/** A directory that cannot be listed was refused by an earlier check, or is closed to commands as well. */
function namesIn(path: BytePath) {
  try {
    return listNames(path);
  } catch {
    return [];
  }
}

function hardLinked(path: BytePath, other: BytePath): BrigError {
  return new BrigError(
    `${quoteBytePath(path)} cannot be kept read-only: ${quoteBytePath(other)} is the same file by another name (a hard link)`,
    {
      code: "workspace.invalid",
      hint: "replace one of them with a copy (cp -p FILE FILE.new && mv FILE.new FILE), or use --sandbox read-only",
    },
  );
}
