import { rename, rm, unlink, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { readTextFile } from "./bounded-file.js";
import { errnoOf } from "./errno.js";
import { makeDirectory } from "./files/make-directory.js";
import { namesIn } from "./files/names-in.js";
import { object, readOrNull, type Shape } from "./json/json-shape.js";
import { parseJson } from "./json/parse-json.js";
import { ownerOf, ownerShape, ownerState, readHostProcesses } from "./owner.js";

const MAX_BYTES = 64 * 1024;

const ownedShape = object({ owner: ownerShape });

/**
 * Records of things that processes of this machine own as long as they live, each in a file of its own, in a directory that is the
 * user's alone. Files that cannot be read are left out; those of processes that have ended are removed.
 */
export class OwnedRecords<T extends object> {
  readonly #directory: string;
  readonly #shape: Shape<T>;

  constructor(directory: string, shape: Shape<T>) {
    this.#directory = directory;
    this.#shape = shape;
  }

  /** Records something of this process until the returned function is called. Error: that of the system. */
  async add(number: number, value: T): Promise<() => Promise<void>> {
    const owner = await ownerOf(process.pid, await readHostProcesses(hostname()));
    const name = `${owner.pid}.${number}.json`;
    const temporary = join(this.#directory, `.${name}.tmp`);
    await makeDirectory(this.#directory, { mode: 0o700 });
    try {
      await writeFile(temporary, `${JSON.stringify({ ...value, owner })}\n`, { mode: 0o600 });
      await rename(temporary, join(this.#directory, name));
    } catch (error) {
      await rm(temporary, { force: true });
      throw error;
    }
    return async () => await removeFile(join(this.#directory, name));
  }

  /** The records of living processes, in no order. */
  async list(): Promise<(T & { pid: number })[]> {
    const processes = await readHostProcesses(hostname());
    const living: (T & { pid: number })[] = [];
    for (const name of await this.#names()) {
      const path = join(this.#directory, name);
      const file = await readTextFile(path, MAX_BYTES);
      const parsed = file.kind === "text" ? parseJson(file.text) : null;
      const owned = readOrNull(ownedShape, parsed);
      if (owned === null) continue;
      const { owner: _, ...rest } = parsed as Record<string, unknown>;
      const value = readOrNull(this.#shape, rest);
      const state = await ownerState(owned.owner, processes);
      // If nothing can be removed, as on a disk mounted read-only, the list is right all the same.
      if (state === "gone") await removeFile(path).catch(() => undefined);
      if (state === "alive" && value !== null) living.push({ ...value, pid: owned.owner.pid });
    }
    return living;
  }

  async #names(): Promise<string[]> {
    return (await namesIn(this.#directory)).filter((name) => /^[0-9]{1,10}\.[0-9]{1,5}\.json$/.test(name));
  }
}

async function removeFile(path: string): Promise<void> {
  try {
    await unlink(path);
  } catch (error) {
    if (errnoOf(error) !== "ENOENT") throw error;
  }
}
