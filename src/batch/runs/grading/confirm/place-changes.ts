import { posix } from "node:path";
import { isBrigError } from "../../../../errors.js";
import { Gate } from "../../../../lib/time/gate.js";
import type { ContainerChange, Engine, Sandbox } from "../../../../sandbox/index.js";
import { openedSandboxOf } from "../../../../sandbox/index.js";

/** Engines answer a few requests at a time sooner than one after the other. */
const WIDTH = 8;

/** The container that the changes were made in. */
interface ChangedContainer {
  engine: Pick<Engine, "readArchive">;
  containerId: string;
}

/** Makes these changes of a stopped container in another one, in which nothing of an agent runs. Errors: the engine's. */
export async function placeChanges(
  sandbox: Sandbox,
  changes: readonly ContainerChange[],
  { from, signal }: { from: ChangedContainer; signal?: AbortSignal | undefined },
): Promise<void> {
  const gate = new Gate();
  const place = (change: ContainerChange) =>
    gate.pass(() => placeChange(sandbox, change, { from, signal }), { width: WIDTH, signal });
  const settled = await Promise.allSettled(changes.map(place));
  for (const one of settled) if (one.status === "rejected") throw one.reason;
  // The loader finds the libraries among them by its cache, as in the agent's container.
  if (changes.some(({ path }) => /\.so(?:\.|$)|^\/etc\/ld\.so/.test(path)))
    await sandbox.exec(["/sbin/ldconfig"], { cwd: "/", timeoutMs: 60_000, signal });
}

async function placeChange(
  sandbox: Sandbox,
  { path, kind }: ContainerChange,
  { from, signal }: { from: ChangedContainer; signal?: AbortSignal | undefined },
): Promise<void> {
  const { engine, containerId } = openedSandboxOf(sandbox);
  // A path that tests have removed since then is treated as if it had never existed.
  const archive =
    kind === "deleted" ? null : await from.engine.readArchive(from.containerId, path, signal && { signal });
  if (archive === null) return await remove(sandbox, path);
  const directory = posix.dirname(path);
  if (kind === "changed") await remove(sandbox, path);
  else await sandbox.files.mkdir(directory, { recursive: true, mode: 0o755 });
  await engine.putArchive(containerId, directory, archive);
}

async function remove({ files }: Sandbox, path: string): Promise<void> {
  try {
    await files.remove(path, { recursive: true, force: true });
  } catch (error) {
    if (!isBrigError(error) || !error.code.startsWith("file.")) throw error;
  }
}
