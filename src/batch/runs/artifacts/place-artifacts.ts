import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { join, posix } from "node:path";
import type { Sandbox, TarEntry } from "../../../sandbox/index.js";
import { openedSandboxOf, streamTar } from "../../../sandbox/index.js";
import { makeDirectories, standAs } from "../place/make-directories.js";
import { ARTIFACTS_FOLDER, type ArtifactManifest } from "./artifact-manifest.js";

/**
 * Makes the artifacts appear in a fresh container at the paths that they had in the agent's, and removes what the
 * agent had removed. Nothing of the agent has run in the container yet.
 */
export async function placeArtifacts(
  sandbox: Sandbox,
  { manifest, folder }: { manifest: ArtifactManifest; folder: string },
): Promise<void> {
  for (const path of manifest.deleted) await sandbox.files.remove(path, { recursive: true, force: true });
  if (await areFewDirectories(sandbox, manifest)) return;
  const parents = new Set(manifest.entries.map(({ path }) => posix.dirname(path)));
  const made = new Set(manifest.entries.filter(({ kind }) => kind === "directory").map(({ path }) => path));
  for (const parent of parents)
    if (!made.has(parent)) await sandbox.files.mkdir(parent, { recursive: true, mode: 0o755 });
  const { engine, containerId } = openedSandboxOf(sandbox);
  await engine.putArchive(containerId, "/", streamTar(packed(manifest, join(folder, ARTIFACTS_FOLDER))));
}

/** Number of artifacts above which unpacking by the engine is faster. */
const FEW = 10;

/** Whether a few directories without files are all, and stand there now. Their times are those of the fresh container. */
async function areFewDirectories(sandbox: Sandbox, { entries }: ArtifactManifest): Promise<boolean> {
  if (entries.length > FEW || entries.some(({ kind }) => kind !== "directory")) return false;
  const wanted = entries.map(({ path, mode, uid, gid }) => ({ path, mode, owner: { uid, gid } }));
  await makeDirectories(sandbox, wanted);
  return await standAs(sandbox, wanted);
}

function* packed({ entries }: ArtifactManifest, root: string): Iterable<TarEntry> {
  for (const { path, kind, file, sizeBytes, mode, uid, gid, modifiedMs } of entries) {
    const header = { path: path.slice(1), mode, owner: { uid, gid }, modifiedAt: new Date(modifiedMs) };
    if (kind === "directory") yield { ...header, kind };
    else yield { ...header, kind, sizeBytes, content: () => regularFile(join(root, file)) };
  }
}

async function* regularFile(path: string): AsyncGenerator<Uint8Array> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  yield* file.createReadStream();
}
