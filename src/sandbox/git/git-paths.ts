import { dirname, resolve } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { directoriesAbove, isAtOrBelow } from "../plan/paths.js";
import {
  type BytePath,
  fromBytePath,
  listNames,
  lstatOrNull,
  readSmallFile,
  toBytePath,
} from "./byte-paths.js";
import { type FoundRepositories, findRepositories } from "./find-repositories.js";
import { type HardLinkedFile, parseAlternates, readGitDirectory, readPointer } from "./git-directory.js";
import { type GitIndex, parseGitIndex } from "./git-index.js";
import { refuseHardLinks } from "./hard-links.js";
import { cannotProtect, type ProtectedPath, ProtectedSet } from "./protected-set.js";
import { type RepositoryConfig, readRepositoryConfig } from "./repository-config.js";

export interface GitPathRequest {
  writable: readonly string[];
  /** Paths protected anyway; `.git` at the top of each writable directory is one, existing or not. */
  protectedPaths: readonly ProtectedPath[];
  homeDirectory: string | null;
}

const CONFIG_MAX_BYTES = 1024 * 1024;
const INDEX_MAX_BYTES = 1024 * 1024 * 1024;
/** Far more than git itself follows: ten levels of includes and five of alternates. */
const MAX_FILES = 1000;

/**
 * Finds every path in the writable directories whose content git on the host would obey, so that all of them
 * can be mounted read-only. Git may be started in a writable directory, in a directory above it, or in a
 * repository inside it. Included are:
 *
 * - each `.git`, also that of a submodule that is not checked out yet, and each bare repository;
 * - what these refer to: the repository behind a `.git` file, included configuration files, `core.hooksPath`,
 *   programs named by settings, alternate object directories, and the targets of symbolic links.
 *
 * Changes nothing and runs nothing. Returns the paths that were protected anyway as well. Errors:
 * `policy.not-enforced` for a path that cannot be protected, `workspace.invalid` for a tree that cannot be
 * searched.
 */
export async function findGitPaths(request: GitPathRequest): Promise<ProtectedPath[]> {
  const writable = request.writable.map(toBytePath);
  const known = request.protectedPaths.map(({ path, identity }) => ({ path: toBytePath(path), identity }));
  const home = request.homeDirectory === null ? null : toBytePath(request.homeDirectory);
  const found = new ProtectedSet(writable, known);
  await new GitPathSearch(found, { writable, home }).run();
  return found.all.map(({ path, identity }) => {
    const text = fromBytePath(path);
    if (text === null) throw cannotProtect(path, "its path is not UTF-8, which the engine's API needs");
    return { path: text, identity };
  });
}

class GitPathSearch {
  readonly #found: ProtectedSet;
  readonly #writable: readonly BytePath[];
  readonly #home: BytePath | null;
  /** Keys of work tree and git directory together, since several repositories may share either of them. */
  readonly #readRepositories = new Set<string>();
  readonly #walked = new Set<BytePath>();
  readonly #hardLinked: HardLinkedFile[] = [];
  /** HEAD files under version control: the bare repository around one is somebody's test data. */
  readonly #trackedHeads = new Set<BytePath>();

  constructor(
    found: ProtectedSet,
    { writable, home }: { writable: readonly BytePath[]; home: BytePath | null },
  ) {
    this.#found = found;
    this.#writable = writable;
    this.#home = home;
  }

  async run(): Promise<void> {
    const above = new Set(this.#writable.flatMap((root) => [root, ...directoriesAbove(root)]));
    for (const directory of above) this.#readDotGit(directory === "/" ? "/.git" : `${directory}/.git`);
    await nextTurn();
    const { dotGits, bare } = await this.#findRepositories();
    for (const dotGit of dotGits) this.#found.protect(dotGit);
    for (const dotGit of dotGits) this.#readDotGit(dotGit);
    for (const directory of bare) {
      if (this.#trackedHeads.has(`${directory}/HEAD`)) continue;
      this.#found.protect(directory);
      this.#readRepository(null, directory);
    }
    for (const { path } of this.#found.all) this.#collectHardLinks(path);
    await refuseHardLinks(this.#hardLinked, this.#writable, (path) => this.#found.isWritable(path));
  }

  async #findRepositories(): Promise<FoundRepositories> {
    const isOpen = (path: BytePath) => this.#found.isWritable(path) && !this.#writable.includes(path);
    const all: FoundRepositories = { dotGits: [], bare: [] };
    for (const root of this.#writable) {
      const { dotGits, bare } = await findRepositories(root);
      all.dotGits.push(...dotGits.filter(isOpen));
      all.bare.push(...bare.filter(isOpen));
    }
    return all;
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
      ...this.#readConfig(`${common}/config`),
      ...this.#readConfig(`${common}/config.worktree`),
      ...(common === directory ? [] : this.#readConfig(`${directory}/config.worktree`)),
    ];
    const configured = configs.findLast((config) => config.workTree !== null)?.workTree;
    const workTrees = [...new Set([workTree, configured && resolve(directory, configured)])].filter(
      (tree) => typeof tree === "string",
    );
    this.#followSettings(configs, {
      workTrees: workTrees.length === 0 ? [directory] : workTrees,
      from: common,
    });
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

  #readConfig(file: BytePath): RepositoryConfig[] {
    const configs: RepositoryConfig[] = [];
    const open = [{ path: file, from: file }];
    const known = new Set([file]);
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      const bytes = this.#readConfigFile(next.path, next.from);
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

  #readConfigFile(path: BytePath, from: BytePath): Buffer | null {
    const target = this.#found.follow({ path, from, whenAbsent: "protect" });
    if (target === null) return null;
    const bytes = this.#ifReadable(target, () => readSmallFile(target, CONFIG_MAX_BYTES));
    if (typeof bytes === "string")
      throw cannotProtect(from, "it is not a small regular file, or does not lead to one");
    return bytes;
  }

  #followSettings(
    configs: readonly RepositoryConfig[],
    { workTrees, from }: { workTrees: readonly BytePath[]; from: BytePath },
  ): void {
    for (const { path, kind, isInWorkTree } of configs.flatMap(({ paths }) => paths)) {
      if (kind === "include") continue;
      for (const named of isInWorkTree ? workTrees.map((tree) => `${tree}/${path}`) : [path]) {
        const isArgument = kind === "argument";
        const target = this.#found.follow({
          path: named,
          from: `${from}/config`,
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
        if (target === null || known.has(target) || known.size > MAX_FILES) continue;
        known.add(target);
        open.push(target);
        this.#walk(target);
      }
    }
  }

  #collectHardLinks(path: BytePath): void {
    if (this.#isWalked(path)) return;
    const contents = this.#ifReadable(path, () => readGitDirectory(path));
    this.#hardLinked.push(...(contents?.hardLinked ?? []));
  }

  /** Collects hard-linked files, follows symbolic links, and reads the repositories of submodules. */
  #walk(directory: BytePath): void {
    if (this.#isWalked(directory) || lstatOrNull(directory)?.isDirectory() !== true) return;
    this.#walked.add(directory);
    const contents = this.#ifReadable(directory, () => readGitDirectory(directory));
    if (contents === null) return;
    this.#hardLinked.push(...contents.hardLinked);
    for (const link of contents.links) {
      const target = this.#found.follow({ path: link, from: link, whenAbsent: "protect" });
      if (target !== null && this.#isInWritable(target)) this.#walk(target);
    }
    for (const repository of contents.repositories)
      if (repository !== directory) this.#readRepository(null, repository);
  }

  #isWalked(path: BytePath): boolean {
    return [...this.#walked].some((walked) => isAtOrBelow(path, walked));
  }

  #isInWritable(path: BytePath): boolean {
    return this.#writable.some((root) => isAtOrBelow(path, root));
  }

  #readIndexes(directory: BytePath, hashBytes: number): GitIndex[] {
    const index = this.#readIndex(`${directory}/index`, hashBytes);
    if (index === null) return [];
    const shared =
      index.sharedIndex === null ? null : this.#readIndex(`${directory}/${index.sharedIndex}`, hashBytes);
    return shared === null ? [index] : [index, shared];
  }

  #readIndex(file: BytePath, hashBytes: number): GitIndex | null {
    const bytes = this.#ifReadable(file, () => readSmallFile(file, INDEX_MAX_BYTES));
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

  /** Returns null for what git, run by the same user outside the writable directories, cannot read either. */
  #ifReadable<T>(path: BytePath, read: () => T): T | null {
    try {
      return read();
    } catch (cause) {
      if (!this.#isInWritable(path)) return null;
      throw cannotProtect(path, "it cannot be read, so where it leads is unknown", cause);
    }
  }
}
