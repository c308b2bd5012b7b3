import { BrigError, isBrigError } from "../../errors.js";
import { pause } from "../../lib/time/pause.js";
import { asRefusal, isDefiniteFailure } from "../docker/engine-failure.js";
import type { Engine } from "../docker/engine-types.js";
import { LABELS, readSessionLabels } from "../labels.js";
import type { OverlayLayers } from "../plan/plan.js";

/** The label of a tree's volumes. Its value is "upper", "work" or "merged". */
export const treeLabel = "brig.tree";

/** The label with the workspace's path, for people. */
const workspaceLabel = "brig.workspace";

interface TreeVolumes {
  /** The volume that receives what commands write. */
  upper: string;
  /** The kernel's own working space for the overlay. */
  work: string;
  /** The overlay of the other two and the host's workspace. It stores nothing itself. */
  merged: string;
}

/**
 * The mount options of an overlay. `xino=on`: files keep the inode numbers of the workspace. `metacopy=off`:
 * a changed file is copied whole, even if only its mode changes. `redirect_dir=off`: rename(2) of a directory
 * of the workspace fails with EXDEV, as it does for directories of a container's image, and `mv` then copies
 * it. With `on`, a renamed directory would lose its files as soon as the host's directory is removed, as an
 * apply does.
 */
const MOUNT_OPTIONS = ["xino=on", "redirect_dir=off", "metacopy=off", "index=off"];

/** An engine may take this long to notice that the last container that used a volume is gone. */
const IN_USE_TRIES = 40;
const BETWEEN_TRIES_MS = 50;

export function treeVolumes(id: string): TreeVolumes {
  return { upper: `brig-${id}-upper`, work: `brig-${id}-work`, merged: `brig-${id}-merged` };
}

/** The directory in which the engine's local driver keeps the files of a volume. */
export function volumeDirectory(dockerRootDir: string, volume: string): string {
  return `${dockerRootDir}/volumes/${volume}/_data`;
}

export function overlayOptions({
  lower,
  upper,
  work,
}: Pick<OverlayLayers, "lower" | "upper" | "work">): string {
  return [`lowerdir=${lower}`, `upperdir=${upper}`, `workdir=${work}`, ...MOUNT_OPTIONS].join(",");
}

/**
 * Creates the volumes of a tree, all at once. The engine mounts the overlay when the first container that uses
 * it starts. Errors: the engine's; `policy.not-enforced` if it keeps the layers elsewhere than planned. The
 * caller removes what was created.
 */
export async function createTreeVolumes(
  engine: Engine,
  layers: OverlayLayers,
  labels: Readonly<Record<string, string>>,
): Promise<void> {
  const names = treeVolumes(layers.id);
  const options = { type: "overlay", device: "overlay", o: overlayOptions(layers) };
  const all = { ...labels, [workspaceLabel]: layers.lower };
  const creating = [
    engine.createVolume(names.upper, { ...all, [treeLabel]: "upper" }),
    engine.createVolume(names.work, { ...all, [treeLabel]: "work" }),
    engine.createVolume(names.merged, { ...all, [treeLabel]: "merged" }, options),
  ] as const;
  // One that is created after the others were removed would stay.
  const failures = (await Promise.allSettled(creating)).flatMap((one) =>
    one.status === "rejected" ? [one.reason] : [],
  );
  // After a failure without an answer a volume may still come.
  const failure = failures.find((reason) => !isDefiniteFailure(reason)) ?? failures[0];
  if (failures.length > 0) throw failure;
  const [upper, work] = await Promise.all(creating);
  if (upper.mountpoint === layers.upper && work.mountpoint === layers.work) return;
  throw new BrigError(
    `the engine keeps the volume ${names.upper} in ${JSON.stringify(upper.mountpoint)}, not in ${JSON.stringify(layers.upper)}`,
    { code: "policy.not-enforced", hint: "use --workspace bind with this engine" },
  );
}

/** Removes the volumes of a tree, which no container may use any more. Error: `engine.failed`. */
export async function removeTreeVolumes(engine: Pick<Engine, "removeVolume">, id: string): Promise<void> {
  const { merged, upper, work } = treeVolumes(id);
  // The merged volume goes first, because the others are its layers.
  await removeUnused(engine, merged);
  await Promise.all([removeUnused(engine, upper), removeUnused(engine, work)]);
}

async function removeUnused(engine: Pick<Engine, "removeVolume">, volume: string): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await engine.removeVolume(volume);
    } catch (error) {
      if (!isInUse(error) || tries === IN_USE_TRIES) throw error;
      await pause(BETWEEN_TRIES_MS);
    }
  }
}

/**
 * Removes the volumes of a session whose process is gone. Keeps them if the user asked for that, or if they
 * are in use. Returns whether none is left.
 */
export async function reclaimTreeVolumes(
  engine: Pick<Engine, "listVolumes" | "removeVolume">,
  sessionId: string,
): Promise<boolean> {
  const volumes = await engine.listVolumes([treeLabel, `${LABELS.session}=${sessionId}`]);
  if (volumes.length === 0) return true;
  if (volumes.every(({ labels }) => readSessionLabels(labels)?.leaseSeconds === 0)) return false;
  const own = Object.values(treeVolumes(sessionId));
  try {
    // The merged volume goes first; its name sorts before the names of its layers.
    for (const { name } of volumes.toSorted((one, other) => (one.name < other.name ? -1 : 1)))
      if (own.includes(name)) await engine.removeVolume(name);
    return true;
  } catch (error) {
    if (isBrigError(error, "engine.failed")) return false;
    throw error;
  }
}

function isInUse(error: unknown): boolean {
  return error instanceof BrigError && asRefusal(error.cause)?.status === 409;
}
