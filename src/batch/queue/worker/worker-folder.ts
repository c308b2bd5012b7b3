import { mkdtemp, readdir, rm } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { makeDirectory } from "../../../lib/files/make-directory.js";
import { readHostProcesses } from "../../../lib/owner.js";

/** A directory of one worker, which is removed with it. */
export interface WorkerFolder extends AsyncDisposable {
  readonly path: string;
}

/** Makes one in `parent`, and removes those that killed workers of this machine have left there. */
export async function openWorkerFolder(parent: string): Promise<WorkerFolder> {
  await makeDirectory(parent);
  const processes = await readHostProcesses(hostname());
  for (const name of await readdir(parent)) {
    const [, host, pid] = /^worker-(.+)\.([0-9]{1,10})\.[^.]+$/.exec(name) ?? [];
    if (host !== processes.host || processes.isAlive(Number(pid))) continue;
    // Folders of another user cannot be removed, and stay.
    await rm(join(parent, name), { recursive: true, force: true }).catch(() => undefined);
  }
  const path = await mkdtemp(join(parent, `worker-${processes.host}.${process.pid}.`));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}
