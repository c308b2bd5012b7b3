import { dirname, resolve } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { directoriesAbove, isAtOrBelow } from "../plan/paths.js";
import { type ConfigMeaning, meaningOf } from "./config-leads.js";
import { type FoundRepositories, findRepositories } from "./find-repositories.js";
import { type LinkedFile, parseAlternates, readGitDirectory, readPointer } from "./git-directory.js";
import { type GitIndex, parseGitIndex } from "./git-index.js";
import { refuseSharedFiles } from "./hard-links.js";
import { type HeldPlace, HeldPlaces, notHeld, type WhenAbsent } from "./held-places.js";
import { type BytePath, fromBytePath, listNames, lookAt, readSmall, toBytePath } from "./host-names.js";

export interface RepositoryRequest {
  /** Directories that commands may write. */
  writable: readonly string[];
  /** What is held already: the `.git` at the top of each is among it, there or not. */
  held: readonly HeldPlace[];
  homeDirectory: string | null;
}

const CONFIG_MAX_BYTES = 1024 * 1024;
const INDEX_MAX_BYTES = 1024 * 1024 * 1024;
/** Git itself follows ten includes and five alternates. */
const MAX_FILES = 1000;

/**
 * The places in writable directories that git on the host would obey when somebody starts it in one of them, in a directory above
 * them, or in a repository that is in one now: each `.git`, also of a submodule that is not there yet, each bare repository, and
 * whatever these lead to: a work tree's repository, included configuration, hooks elsewhere, programs that a setting names,
 * borrowed objects, links. All of them are to be mounted read-only. Changes nothing and starts nothing.
 *
 * Error: `policy.not-enforced` for what cannot be held, `workspace.invalid` for a tree that cannot be looked through.
 */
export async function findRepositoryPlaces(request: RepositoryRequest): Promise<HeldPlace[]> {
  const writable = request.writable.map(toBytePath);
  const held = request.held.map((place) => ({ ...place, path: toBytePath(place.path) }));
  const home = request.homeDirectory === null ? null : toBytePath(request.homeDirectory);
  const places = new RepositoryPlaces(new HeldPlaces(writable, held), { writable, home });
  await places.find();
  return places.held.all.map(({ path, identity }) => {
    const text = fromBytePath(path);
    if (text === null) throw notHeld(path, "its path is not UTF-8, which the engine cannot be told");
    return { path: text, identity };
  });
}

class RepositoryPlaces {
  readonly held: HeldPlaces;
  readonly #writable: readonly BytePath[];
  readonly #home: BytePath | null;
  /** By work tree and git directory: both of a repository may be shared. */
  readonly #read = new Set<string>();
  readonly #walked = new Set<BytePath>();
  readonly #linked: LinkedFile[] = [];
  /** Files with that name that are under version control: the directory is somebody's test data. */
  readonly #trackedHeads = new Set<BytePath>();

  constructor(
    held: HeldPlaces,
    { writable, home }: { writable: readonly BytePath[]; home: BytePath | null },
  ) {
    this.held = held;
    this.#writable = writable;
    this.#home = home;
  }

  async find(): Promise<void> {
    const above = new Set(this.#writable.flatMap((root) => [root, ...directoriesAbove(root)]));
    for (const directory of above) this.#readDotGit(directory === "/" ? "/.git" : `${directory}/.git`);
    await nextTurn();
    const found = await this.#search();
    for (const dotGit of found.dotGits) this.held.hold(dotGit);
    for (const dotGit of found.dotGits) this.#readDotGit(dotGit);
    for (const directory of found.bare)
      if (!this.#trackedHeads.has(`${directory}/HEAD`)) this.#holdBare(directory);
    for (const place of this.held.all) this.#noteLinked(place.path);
    await refuseSharedFiles(this.#linked, this.#writable, (path) => this.held.isWritable(path));
  }

  async #search(): Promise<FoundRepositories> {
    const isOpen = (path: BytePath) => this.held.isWritable(path) && !this.#writable.includes(path);
    const found: FoundRepositories = { dotGits: [], bare: [] };
    for (const root of this.#writable) {
      const { dotGits, bare } = await findRepositories(root);
      found.dotGits.push(...dotGits.filter(isOpen));
      found.bare.push(...bare.filter(isOpen));
    }
    return found;
  }

  #holdDotGit(dotGit: BytePath): void {
    this.held.hold(dotGit);
    this.#readDotGit(dotGit);
  }

  #holdBare(directory: BytePath): void {
    this.held.hold(directory);
    this.#readRepository(null, directory);
  }

  /** A repository's `.git`: the directory itself, or a file that says where it is. */
  #readDotGit(dotGit: BytePath): void {
    const workTree = dirname(dotGit);
    const stat = lookAt(dotGit);
    const directory = stat?.isFile() ? this.#pointedTo(dotGit) : stat && dotGit;
    if (directory !== null) this.#readRepository(workTree, directory);
  }

  #pointedTo(dotGit: BytePath): BytePath | null {
    const target = /^gitdir: ([\s\S]+?)[\r\n]*$/.exec(this.#readPointer(dotGit) ?? "")?.[1];
    if (target === undefined) return null;
    const isTop = this.#writable.includes(dirname(dotGit));
    const whenAbsent = isTop ? "refuse" : "hold";
    return this.#follow(resolve(dirname(dotGit), target), { from: dotGit, whenAbsent });
  }

  #readRepository(workTree: BytePath | null, directory: BytePath): void {
    const key = `${workTree}\0${directory}`;
    if (this.#read.has(key)) return;
    this.#read.add(key);
    const common = this.#commonDirectory(directory);
    const meanings = [
      ...this.#readConfig(`${common}/config`),
      ...this.#readConfig(`${common}/config.worktree`),
      ...(common === directory ? [] : this.#readConfig(`${directory}/config.worktree`)),
    ];
    const named = meanings.findLast((meaning) => meaning.workTree !== null)?.workTree;
    const other = named === undefined || named === null ? [] : [resolve(directory, named)];
    const workTrees = [...new Set([...(workTree === null ? [] : [workTree]), ...other])];
    this.#followSettings(meanings, {
      workTrees: workTrees.length === 0 ? [directory] : workTrees,
      from: common,
    });
    this.#followAlternates(`${common}/objects`);
    this.#walk(directory);
    this.#walk(common);
    const hashBytes = meanings.some(({ usesSha256 }) => usesSha256) ? 32 : 20;
    for (const index of this.#readIndexes(directory, hashBytes))
      for (const tree of workTrees) this.#readTracked(tree, index);
  }

  #commonDirectory(directory: BytePath): BytePath {
    const file = `${directory}/commondir`;
    const pointer = this.#readPointer(file);
    if (pointer === null) return directory;
    const target = resolve(directory, pointer.replace(/[\r\n]+$/, ""));
    return this.#follow(target, { from: file, whenAbsent: "refuse" }) ?? directory;
  }

  /** A file and all that it includes. */
  #readConfig(file: BytePath): ConfigMeaning[] {
    const meanings: ConfigMeaning[] = [];
    const open = [{ path: file, from: file }];
    const known = new Set([file]);
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      const bytes = this.#readObeyed(next.path, next.from);
      if (bytes === null) continue;
      if (known.size > MAX_FILES) throw notHeld(file, "it includes more files than git would follow");
      const meaning = meaningOf(bytes, { directory: dirname(next.path), home: this.#home });
      meanings.push(meaning);
      for (const { kind, path } of meaning.leads) {
        if (kind !== "include" || known.has(path)) continue;
        known.add(path);
        open.push({ path, from: next.path });
      }
    }
    return meanings;
  }

  #readObeyed(path: BytePath, from: BytePath): Buffer | null {
    const place = this.#follow(path, { from, whenAbsent: "hold" });
    if (place === null) return null;
    const bytes = this.#attempt(place, () => readSmall(place, CONFIG_MAX_BYTES));
    if (typeof bytes === "string") throw notHeld(from, "it is not a small regular file, or leads to none");
    return bytes;
  }

  #followSettings(
    meanings: readonly ConfigMeaning[],
    { workTrees, from }: { workTrees: readonly BytePath[]; from: BytePath },
  ): void {
    for (const { path, kind, isInWorkTree } of meanings.flatMap(({ leads }) => leads)) {
      if (kind === "include") continue;
      for (const target of isInWorkTree ? workTrees.map((tree) => `${tree}/${path}`) : [path]) {
        const isArgument = kind === "argument";
        const place = this.#follow(target, {
          from: `${from}/config`,
          whenAbsent: isArgument ? "ignore" : "hold",
          onlyFiles: isArgument,
        });
        if (kind === "hooks" && place !== null) this.#walk(place);
      }
    }
  }

  #followAlternates(objects: BytePath): void {
    const open = [objects];
    const known = new Set(open);
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      const file = `${next}/info/alternates`;
      for (const line of parseAlternates(this.#readPointer(file) ?? "")) {
        const place = this.#follow(resolve(next, line), { from: file, whenAbsent: "hold" });
        if (place === null || known.has(place) || known.size > MAX_FILES) continue;
        known.add(place);
        open.push(place);
        this.#walk(place);
      }
    }
  }

  #noteLinked(path: BytePath): void {
    if ([...this.#walked].some((walked) => isAtOrBelow(path, walked))) return;
    const contents = this.#attempt(path, () => readGitDirectory(path));
    this.#linked.push(...(contents?.linkedFiles ?? []));
  }

  /** Links in it, files with other names, and repositories of submodules. */
  #walk(directory: BytePath): void {
    const isKnown = [...this.#walked].some((walked) => isAtOrBelow(directory, walked));
    if (isKnown || lookAt(directory)?.isDirectory() !== true) return;
    this.#walked.add(directory);
    const contents = this.#attempt(directory, () => readGitDirectory(directory));
    if (contents === null) return;
    this.#linked.push(...contents.linkedFiles);
    for (const link of contents.links) {
      const place = this.#follow(link, { from: link, whenAbsent: "hold" });
      if (place !== null && this.#writable.some((root) => isAtOrBelow(place, root))) this.#walk(place);
    }
    for (const repository of contents.repositories)
      if (repository !== directory) this.#readRepository(null, repository);
  }

  #readIndexes(directory: BytePath, hashBytes: number): GitIndex[] {
    const index = this.#readIndex(`${directory}/index`, hashBytes);
    if (index === null) return [];
    const shared =
      index.sharedIndex === null ? null : this.#readIndex(`${directory}/${index.sharedIndex}`, hashBytes);
    return shared === null ? [index] : [index, shared];
  }

  #readIndex(file: BytePath, hashBytes: number): GitIndex | null {
    const bytes = this.#attempt(file, () => readSmall(file, INDEX_MAX_BYTES));
    if (bytes === null) return null;
    const index = typeof bytes === "string" ? null : parseGitIndex(bytes, hashBytes);
    if (index?.isSparse)
      throw notHeld(
        file,
        "it is sparse and does not list every submodule; `git sparse-checkout reapply --no-sparse-index` repairs it",
      );
    if (index !== null || (typeof bytes !== "string" && bytes.length === 0)) return index;
    throw notHeld(file, "it is no index that can be read, so where submodules are is unknown");
  }

  #readTracked(workTree: BytePath, { gitlinks, heads }: GitIndex): void {
    for (const head of heads) this.#trackedHeads.add(`${workTree}/${head}`);
    for (const gitlink of gitlinks) {
      const path = resolve(workTree, gitlink);
      if (this.held.isWritable(path) && isAtOrBelow(path, workTree)) this.#holdSubmodule(path);
    }
  }

  /** Git enters it by itself, so what it finds there may not be a command's. */
  #holdSubmodule(path: BytePath): void {
    const obstacle = this.held.obstacle(path);
    if (obstacle !== null) return void this.held.hold(obstacle);
    const dotGit = `${path}/.git`;
    const isUnused = listNames(path).length === 0;
    if (isUnused) this.held.hold(path);
    else if (this.held.isWritable(dotGit)) this.#holdDotGit(dotGit);
  }

  #readPointer(file: BytePath): string | null {
    const pointer = readPointer(file);
    if (pointer.kind === "unreadable") throw notHeld(file, pointer.reason, pointer.cause);
    return pointer.kind === "text" ? pointer.text : null;
  }

  #follow(
    path: BytePath,
    lead: { from: BytePath; whenAbsent: WhenAbsent; onlyFiles?: boolean },
  ): BytePath | null {
    return this.held.follow({ path, ...lead });
  }

  /** What this user may not read below another's directory, git does not read either. */
  #attempt<T>(path: BytePath, action: () => T): T | null {
    try {
      return action();
    } catch (cause) {
      if (!this.#writable.some((root) => isAtOrBelow(path, root))) return null;
      throw notHeld(path, "it cannot be read, so where it leads is unknown", cause);
    }
  }
}
