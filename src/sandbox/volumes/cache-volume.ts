import { createHash } from "node:crypto";
import type { Engine } from "../docker/engine-types.js";
import { homeLabels, toolboxLabel, volumeContainer } from "../images/toolbox-volume.js";

/** A volume that is mounted, writable, at an absolute path. */
export interface VolumeMount {
  volume: string;
  path: string;
}

/** The label of cache volumes; its value says for people what the volume belongs to. */
export const cacheLabel = "brig.cache";

/** The same names lead to the same volume, but to another one for each user of the host. */
export function cacheVolumeName(names: readonly string[]): string {
  const identity = JSON.stringify([process.getuid?.() ?? null, ...names]);
  return `brig-cache-${createHash("sha256").update(identity).digest("hex").slice(0, 24)}`;
}

/**
 * Creates the volume if it does not exist, writable for every user id: an engine gives a new volume the owner and the
 * mode of the directory that the image has at the mount point, which here is /tmp.
 */
export async function ensureCacheVolume(
  engine: Engine,
  volume: string,
  { image, label, brigHome }: { image: string; label: string; brigHome?: string | undefined },
): Promise<void> {
  const found = await engine.inspectVolume(volume);
  if (found !== null && Object.hasOwn(found.labels, cacheLabel)) return;
  // The engine itself made it, for a container whose volume was removed in between, and only root can write to it.
  if (found !== null) await engine.removeVolume(volume);
  const ofHome = brigHome === undefined ? {} : homeLabels(brigHome);
  const container = volumeContainer({
    image,
    argv: ["/nothing"],
    // If this process is killed before the removal, `brig gc --unrecorded` finds the container by this label.
    labels: { [toolboxLabel]: "cache" },
    volume: {
      Type: "volume",
      Source: volume,
      Target: "/tmp",
      ReadOnly: false,
      VolumeOptions: { Labels: { ...ofHome, [cacheLabel]: label } },
    },
  });
  try {
    // One request creates the volume with its label and its mode, so that a volume with the label always has the
    // mode, even if this process is killed. The container never starts.
    await engine.removeContainer(await engine.createContainer(container));
  } catch (error) {
    // The engine may have created the volume and failed after that.
    await engine.removeVolume(volume);
    throw error;
  }
}
