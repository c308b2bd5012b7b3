import { TOOLBOX_PATH } from "../plan/create-body.js";
import { openedSandboxOf, type Sandbox } from "../sandbox.js";
import { occupiedBytes, scanChanges } from "./tree-changes.js";

/** Directories whose contents the kernel makes up: they are in no file system of the container's own. */
const NOT_ON_DISK = ["proc", "sys", "dev"];

/**
 * The number of bytes by which files of a sandbox occupy less than their size on its disk, because of their holes. Only the files at
 * these absolute paths count, each of them once under all its names; those in directories that the sandbox's user cannot read are
 * left out. Errors: those of a scan.
 */
export async function holeBytes(
  sandbox: Sandbox,
  paths: ReadonlySet<string>,
  { signal }: { signal?: AbortSignal | undefined } = {},
): Promise<number> {
  const { link, plan } = openedSandboxOf(sandbox);
  const mounted = [TOOLBOX_PATH, ...[...plan.mounts, ...plan.tmpfs].map(({ path }) => path)];
  const counted = new Set<bigint>();
  let bytes = 0;
  await scanChanges(
    { link, cwd: "/", env: {}, onStuck: () => undefined },
    {
      // Every file of the merged directory is reported, whatever the base directory has.
      base: TOOLBOX_PATH,
      merged: "/",
      upper: "/",
      listSame: true,
      leftOut: [...NOT_ON_DISK, ...mounted.map((path) => path.slice(1))],
      signal,
      onChanges(changes) {
        for (const { path, now } of changes) {
          if (now?.type !== "file" || counted.has(now.ino) || !paths.has(`/${path.toString()}`)) continue;
          if (now.links > 1) counted.add(now.ino);
          bytes += now.sizeBytes - occupiedBytes(now);
        }
      },
    },
  );
  return bytes;
}
