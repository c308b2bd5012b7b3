import { type Dir, lstatSync, opendirSync } from "node:fs";
import { join } from "node:path";
import { BrigError } from "../../errors.js";
import { looksLikeGvisor, runtimeOf } from "../docker/diagnosis/gvisor.js";
import { asRefusal } from "../docker/engine-failure.js";
import type { EngineInfo } from "../docker/engine-types.js";
import { isRootless } from "../docker/rootless.js";
import { isAtOrBelow } from "../plan/paths.js";
import type { OverlayLayers, PlannedMount } from "../plan/plan.js";
import { type CheckedDirectory, type HostDirectories, submountsBelow } from "../plan/workspace.js";
import { overlayOptions, treeVolumes, volumeDirectory } from "./tree-volumes.js";

interface OverlayRequest {
  overlay?: { readonly id: string } | undefined;
  engine: EngineInfo;
  runtime?: string | undefined;
  host: HostDirectories;
}

interface PlannedTree {
  /** The directory that is copy-on-write: the workspace, or its repository. */
  directory: CheckedDirectory | null;
  mounts: readonly PlannedMount[];
  absentNames: readonly string[];
}

const USE_BIND = "use --workspace bind";
/** The kernel takes a page of mount options, with a NUL at its end. */
const OPTIONS_MAX_BYTES = 4095;
const MAX_WITNESSES = 8;
/** At most this many entries of the workspace are examined to find witnesses. */
const MAX_LOOKED_AT = 64;

/**
 * Plans the layers of a copy-on-write workspace; null for any other. Errors: `policy.not-enforced` for an
 * engine that cannot have one, `workspace.invalid` for a workspace that cannot be one.
 */
export async function planOverlay(
  { overlay, engine, runtime, host }: OverlayRequest,
  { directory, mounts, absentNames }: PlannedTree,
): Promise<OverlayLayers | null> {
  if (overlay === undefined || directory === null) return null;
  const { path, identity } = directory;
  const obstacle = overlayObstacle(engine, runtime);
  if (obstacle !== null) throw noOverlay(obstacle);
  await refuseHiddenMounts(path, { mounts, host });
  const { upper, work } = treeVolumes(overlay.id);
  const covered = new Set([...mounts.map(({ path }) => path), ...absentNames]);
  const layers = {
    id: overlay.id,
    path,
    lower: path,
    identity,
    upper: volumeDirectory(engine.dockerRootDir, upper),
    work: volumeDirectory(engine.dockerRootDir, work),
    witnesses: findWitnesses(path).filter((witness) => !covered.has(witness.path)),
  };
  requireShortOptions(layers);
  return layers;
}

/** Says why this engine cannot have copy-on-write workspaces; null if it can. */
function overlayObstacle(engine: EngineInfo, runtime?: string): string | null {
  if (isRootless(engine)) return "a rootless engine may not mount them";
  if (engine.securityOptions.some((option) => option.split(",").includes("name=userns")))
    return "the engine maps user ids, so files would not keep their owners";
  if (engine.os !== "linux") return "the engine does not run on Linux";
  if (looksLikeGvisor(runtimeOf(engine, runtime ?? null))) return "they are not supported with gVisor";
  if (/[,:\\]/.test(engine.dockerRootDir)) return "the path of the engine's data contains a separator";
  return null;
}

/** Error: `policy.not-enforced`. */
export function noOverlay(obstacle: string): BrigError {
  return new BrigError(`this engine cannot have copy-on-write workspaces: ${obstacle}`, {
    code: "policy.not-enforced",
    hint: USE_BIND,
  });
}

/**
 * The engine mounts the overlay when the first container starts. If the kernel refuses that, this returns an
 * error that says so; any other error is returned as it is.
 */
export function explainMountFailure(error: unknown, { id, lower }: OverlayLayers): unknown {
  const refusal = error instanceof BrigError ? asRefusal(error.cause) : null;
  const reason = refusal === null ? null : mountReason(refusal.words, treeVolumes(id).merged);
  if (reason === null) return error;
  return new BrigError(
    `the engine cannot mount a copy-on-write layer over ${JSON.stringify(lower)}: ${reason}`,
    {
      code: "workspace.invalid",
      hint: `its file system may not be able to have one; ${USE_BIND}`,
      cause: error,
    },
  );
}

/** Docker ends with the kernel's reason. Podman passes on what mount(8) says, which goes on after the reason. Null if it is not about this volume. */
function mountReason(words: string, volume: string): string | null {
  if (words.split(`${volume}/_data, data: `).length === 2) return words.split(": ").at(-1) ?? null;
  if (!words.includes(`mounting volume ${volume} for container `)) return null;
  return words.split(`${volume}/_data: `)[1]?.split(/\.?\n/)[0] ?? null;
}

function requireShortOptions(layers: OverlayLayers): void {
  const bytes = Buffer.byteLength(overlayOptions(layers));
  if (bytes <= OPTIONS_MAX_BYTES) return;
  throw new BrigError(
    `the workspace ${JSON.stringify(layers.lower)} cannot be copy-on-write: its path is too long for the ` +
      `options of an overlay mount, by ${bytes - OPTIONS_MAX_BYTES} bytes`,
    { code: "workspace.invalid", hint: `use a shorter path, or ${USE_BIND}` },
  );
}

/**
 * Refuses a workspace with mounts below it: an overlay shows only one file system, and a mount as an empty
 * directory.
 */
async function refuseHiddenMounts(
  workspace: string,
  { mounts, host }: { mounts: readonly PlannedMount[]; host: HostDirectories },
): Promise<void> {
  const shown = mounts.filter(({ source }) => source === undefined).map(({ path }) => path);
  const hidden = (await submountsBelow(workspace, host)).find(
    ({ path }) => !shown.some((mount) => isAtOrBelow(mount, workspace) && isAtOrBelow(path, mount)),
  );
  if (hidden === undefined) return;
  throw new BrigError(
    `the workspace ${JSON.stringify(workspace)} cannot be copy-on-write: ${JSON.stringify(hidden.path)} is a mount of ` +
      "its own, which would be empty inside",
    { code: "workspace.invalid", hint: `unmount it, add it with --add-dir, or ${USE_BIND}` },
  );
}

/**
 * Finds witnesses: files and directories at the top of the workspace, whose inodes later show that the
 * overlay has the right directory below it. Synchronous, because short calls take a tenth of the time that
 * way.
 */
function findWitnesses(workspace: string): { path: string; ino: string }[] {
  const found: { path: string; ino: string }[] = [];
  const directory = openOrNull(workspace);
  if (directory === null) return found;
  try {
    for (let looked = 0; looked < MAX_LOOKED_AT && found.length < MAX_WITNESSES; looked++) {
      const entry = directory.readSync();
      if (entry === null) break;
      const path = join(workspace, entry.name);
      if (!entry.isFile() && !entry.isDirectory()) continue;
      const stat = lstatSync(path, { bigint: true, throwIfNoEntry: false });
      if (stat !== undefined && !path.includes("\n")) found.push({ path, ino: String(stat.ino) });
    }
  } finally {
    directory.closeSync();
  }
  return found;
}

function openOrNull(workspace: string): Dir | null {
  try {
    return opendirSync(workspace, { encoding: "utf8" });
  } catch {
    return null;
  }
}
