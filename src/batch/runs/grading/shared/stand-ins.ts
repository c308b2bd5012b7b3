import { posix } from "node:path";
import type { ContainerChange, Sandbox } from "../../../../sandbox/index.js";
import { statOf, unlessRefused } from "../../place/file-refusal.js";
import type { Originals } from "./originals.js";
import {
  isProgramFile,
  isUsualModule,
  othersOfThatName,
  type SharedPlaces,
  topModuleOf,
} from "./treatment.js";

/** Programs of which tests that install something are the first to have one. */
const OFTEN_INSTALLED =
  "curl wget git pip pip3 python python3 uv uvx node npm npx make gcc sudo timeout tee".split(" ");
const PACKAGE_MANAGERS_DIRECTORIES = ["/usr/bin", "/usr/sbin", "/bin", "/sbin"];

/** Finds what an agent has added that is found on a search path in place of a file of the image. */
export class StandIns {
  readonly #sandbox: Sandbox;
  readonly #originals: Originals;
  readonly #places: SharedPlaces;
  readonly #added: ReadonlySet<string>;
  readonly #deleted: ReadonlySet<string>;
  /** Names in the directories of search paths. A package may bring thousands of files that stand in for none. */
  readonly #names = new Map<string, Promise<ReadonlySet<string>>>();

  constructor(
    sandbox: Sandbox,
    given: { originals: Originals; places: SharedPlaces; changes: readonly ContainerChange[] },
  ) {
    const pathsOf = (wanted: ContainerChange["kind"]) =>
      new Set(given.changes.filter(({ kind }) => kind === wanted).map(({ path }) => path));
    this.#sandbox = sandbox;
    this.#originals = given.originals;
    this.#places = given.places;
    this.#added = pathsOf("added");
    this.#deleted = pathsOf("deleted");
  }

  /** Whether a new program, library or header is found before one of the image, or is only read by programs beside it. */
  async has(path: string): Promise<boolean> {
    const { programs } = this.#places;
    const isProgram = isProgramFile(path, this.#places);
    if (isProgram) {
      const stat = await statOf(this.#sandbox, path);
      if (stat?.type === "directory") return false;
      if (stat?.type === "file" && (stat.mode & 0o111) === 0) return true;
      const isOfManager = PACKAGE_MANAGERS_DIRECTORIES.includes(posix.dirname(path));
      if (OFTEN_INSTALLED.includes(posix.basename(path)) && !isOfManager) return true;
    }
    return await this.#hasImageOne(othersOfThatName(path, { programs, isProgram }), path);
  }

  /** Whether a module in the working directory stands in for another. What the project itself already had is its own. */
  async hasModule({ path, kind }: ContainerChange): Promise<boolean> {
    const name = topModuleOf(path, this.#places);
    if (
      name === null ||
      kind !== "added" ||
      (await this.#originals.entry(path, { isOfImage: false })) !== null
    )
      return false;
    if (isUsualModule(name)) return true;
    const others = (await this.#pythonDirectories()).flatMap((directory) =>
      [`${name}.py`, `${name}/__init__.py`].map((file) => posix.join(directory, file)),
    );
    return await this.#hasImageOne(others, path);
  }

  /** Search paths of the interpreters in the usual places. */
  async #pythonDirectories(): Promise<string[]> {
    const found: string[] = [];
    for (const above of ["/usr/lib", "/usr/local/lib"])
      for (const name of await this.#namesIn(above))
        if (/^python\d/.test(name)) found.push(posix.join(above, name));
    return found.flatMap((directory) =>
      ["", "site-packages", "dist-packages"].map((below) => posix.join(directory, below)),
    );
  }

  async #hasImageOne(others: readonly string[], path: string): Promise<boolean> {
    for (const other of others) if (await this.#isOfImage(other, path)) return true;
    return false;
  }

  /** Whether the image has this path as another file. Deleted paths count: they are restored, be it before or after this. */
  async #isOfImage(other: string, path: string): Promise<boolean> {
    if (this.#added.has(other)) return false;
    if (this.#isDeleted(other)) return (await this.#originals.entry(other)) !== null;
    const names = await this.#namesIn(posix.dirname(other));
    return names.has(posix.basename(other)) && (await this.#isAnotherFile(other, path));
  }

  #isDeleted(path: string): boolean {
    for (let at = path; at !== "/"; at = posix.dirname(at)) if (this.#deleted.has(at)) return true;
    return false;
  }

  /** In many images /bin is a link to /usr/bin, so that a program has two paths. Directories of one name have different files. */
  async #isAnotherFile(other: string, path: string): Promise<boolean> {
    const [one, two] = [await statOf(this.#sandbox, other), await statOf(this.#sandbox, path)];
    if (one === null || one.type === "directory" || two?.type === "directory") return false;
    return one.ino !== two?.ino || one.dev !== two.dev;
  }

  async #namesIn(directory: string): Promise<ReadonlySet<string>> {
    const known = this.#names.get(directory);
    if (known !== undefined) return await known;
    const reading = this.#list(directory);
    this.#names.set(directory, reading);
    return await reading;
  }

  async #list(directory: string): Promise<ReadonlySet<string>> {
    const entries = await unlessRefused(this.#sandbox.files.list(directory));
    return new Set(entries?.map(({ name }) => name));
  }
}
