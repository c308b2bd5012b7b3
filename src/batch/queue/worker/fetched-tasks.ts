import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { BrigError } from "../../../errors.js";
import { faultsError } from "../../tasks/notes.js";
import { examineTasks } from "../../tasks/read-tasks.js";
import type { Task } from "../../tasks/task.js";
import { unpack } from "../bundle.js";
import { type AttemptJob, storeKeys } from "../records.js";
import type { ObjectStore } from "../store.js";

const MAX_BYTES = 16 * 1024 ** 3;
/** Packages that no attempt is using at the moment are kept, since the next attempt often needs one of them. */
const MAX_UNUSED = 16;

interface Package {
  tasks: Promise<Task[]>;
  users: number;
}

export interface FetchedTasksOptions {
  store: ObjectStore;
  /** Exists. Packages are unpacked below it. */
  folder: string;
  /** The variables of this machine that tasks may ask for. */
  variables: Readonly<Record<string, string | undefined>>;
}

/** Brings tasks from the store, and reads them as the submitter has. */
export class FetchedTasks {
  readonly #options: FetchedTasksOptions;
  /** The one that was used last is the last. */
  readonly #packages = new Map<string, Package>();

  constructor(options: FetchedTasksOptions) {
    this.#options = options;
  }

  /** A task's files stay until it is disposed of. Errors: `store.failed`, and `task.invalid` for a task that is another one here. */
  async take(job: AttemptJob): Promise<{ task: Task } & AsyncDisposable> {
    const id = idOf(job.package);
    const used = this.#packages.get(id) ?? { tasks: this.#fetch(job.package), users: 0 };
    this.#packages.delete(id);
    this.#packages.set(id, used);
    used.users++;
    const release = async () => {
      used.users--;
      await this.#removeUnused();
    };
    try {
      const task = (await used.tasks).find(({ name }) => name === job.task);
      if (task === undefined || task.checksum !== job.taskChecksum) throw anotherTask(job.task);
      return { task, [Symbol.asyncDispose]: release };
    } catch (error) {
      await release();
      throw error;
    }
  }

  /** A failure is forgotten, so that the next attempt tries again. */
  async #fetch(wanted: AttemptJob["package"]): Promise<Task[]> {
    try {
      return await this.#read(wanted);
    } catch (error) {
      this.#packages.delete(idOf(wanted));
      throw error;
    }
  }

  async #read({ sha256, path }: AttemptJob["package"]): Promise<Task[]> {
    const { store, folder, variables } = this.#options;
    const directory = this.#directory(idOf({ sha256, path }));
    const archive = `${directory}.tar.gz`;
    await rm(directory, { recursive: true, force: true });
    await rm(archive, { force: true });
    await mkdir(directory);
    if ((await store.get(storeKeys.package(sha256), archive, { maxBytes: MAX_BYTES })) === "missing")
      throw new BrigError(`${storeKeys.package(sha256)} is not in ${store.name}`, {
        code: "store.failed",
        hint: "give all workers the --results of the command that submitted the run",
      });
    if ((await checksumOf(archive)) !== sha256)
      throw new BrigError(`${storeKeys.package(sha256)} in ${store.name} is not what was put there`, {
        code: "store.failed",
        hint: "remove it from the store, and run the same command again",
      });
    await unpack(archive, { into: directory, allowsLinks: true, maxBytes: MAX_BYTES });
    await rm(archive);
    if (path.split("/").includes("..")) throw anotherTask(path);
    const { tasks, faults } = await examineTasks([join(directory, path)], { cwd: folder, variables });
    if (tasks.length === 0) throw faultsError(faults);
    return tasks;
  }

  async #removeUnused(): Promise<void> {
    const unused = [...this.#packages].filter(([, { users }]) => users === 0);
    for (const [id] of unused.slice(0, Math.max(0, unused.length - MAX_UNUSED))) {
      this.#packages.delete(id);
      await rm(this.#directory(id), { recursive: true, force: true });
    }
  }

  #directory(id: string): string {
    return join(this.#options.folder, id);
  }
}

function idOf({ sha256, path }: AttemptJob["package"]): string {
  return createHash("sha256")
    .update(JSON.stringify([sha256, path]))
    .digest("hex");
}

export async function checksumOf(file: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer);
  return hash.digest("hex");
}

function anotherTask(task: string): BrigError {
  return new BrigError(`what was submitted as the task ${JSON.stringify(task)} is another one here`, {
    code: "task.invalid",
    hint: "its files were changed while it was submitted, or its row names an absolute path: run the same command again",
  });
}
