import type { Engine, Mount } from "../engine-types.js";

/** The label of a volume in memory. Its value is where the volume is mounted. */
export const memoryLabel = "brig.memory";

const pageBytes = 4096;

/** The volumes of the container brig-1a2b are called brig-1a2b-memory-0, brig-1a2b-memory-1 and so on. */
const SUFFIX = "-memory-";

/** Mounts and volumes that replace the tmpfs mounts of a request. */
export interface PodmanMemory {
  /** Mounts to which nobody can write. */
  readOnly: PodmanMount[];
  volumes: MemoryVolume[];
}

interface MemoryVolume extends PodmanVolume {
  /** The type and the options of the volume's driver. */
  driver: { type: "tmpfs"; device: "tmpfs"; o: string };
}

/**
 * A volume for each writable tmpfs mount. Podman takes neither an owner nor a limit of files for a tmpfs mount of a container, but
 * both for a volume that is a tmpfs. Such a volume needs memory only while a container that has it runs. Nobody can make files in a
 * read-only tmpfs mount, so that needs neither. The volumes are called `name`-memory-0 and so on.
 */
export function planMemory(tmpfs: Readonly<Record<string, string>>, name: string): PodmanMemory {
  const mounts = Object.entries(tmpfs).map(([path, options]) => ({ path, options: options.split(",") }));
  const isReadOnly = ({ options }: { options: string[] }) => options.includes("ro");
  return {
    readOnly: mounts.filter(isReadOnly).map(({ path, options }) => ({
      destination: path,
      type: "tmpfs",
      source: "tmpfs",
      options: readOnlyOptions(options),
    })),
    volumes: mounts
      .filter((mount) => !isReadOnly(mount))
      .map(({ path, options }, index) => ({
        Name: `${name}${SUFFIX}${index}`,
        Dest: path,
        Options: [...options.filter((option) => !option.includes("=")), "nocopy"],
        driver: { type: "tmpfs", device: "tmpfs", o: volumeOptions(options) },
      })),
  };
}

/** Whether it is one of those that `planMemory` plans for a container of this name. */
export function isMemoryVolume(volume: string, name: string): boolean {
  const start = `${name}${SUFFIX}`;
  return volume.startsWith(start) && /^\d+$/.test(volume.slice(start.length));
}

/** Error: the engine's, and then none of the volumes is left if it can be helped. */
export async function createMemoryVolumes(
  volumes: readonly MemoryVolume[],
  {
    labels,
    engine,
  }: { labels: Record<string, string>; engine: Pick<Engine, "createVolume" | "removeVolume"> },
): Promise<void> {
  const made = await Promise.allSettled(
    volumes.map(({ Name, Dest, driver }) =>
      engine.createVolume(Name, { ...labels, [memoryLabel]: Dest }, { ...driver }),
    ),
  );
  const failed = made.find((one) => one.status === "rejected");
  if (failed === undefined) return;
  await Promise.allSettled(volumes.map(({ Name }) => engine.removeVolume(Name)));
  throw failed.reason;
}

/** Podman 4 reads `size` as a quota of the disk, which it refuses where the disk has none. */
function volumeOptions(options: readonly string[]): string {
  return options.map(inBlocks).join(",");
}

function inBlocks(option: string): string {
  const [, size, unit = ""] = /^size=(\d+)([kmg]?)$/.exec(option) ?? [];
  if (size === undefined) return option;
  const bytes = Number(size) * 1024 ** ["", "k", "m", "g"].indexOf(unit);
  return `nr_blocks=${Math.ceil(bytes / pageBytes)}`;
}

/** The options end with `notmpcopyup`: otherwise Podman would copy the files that the image has at the path. */
function readOnlyOptions(options: readonly string[]): string[] {
  return [...options.filter((option) => !/^(?:nr_inodes|uid|gid)=/.test(option)), "notmpcopyup"];
}

/** A mount in the form that the OCI runtime receives. */
export interface PodmanMount {
  destination: string;
  type: Mount["Type"] | "devpts" | "mqueue";
  source: string;
  options: string[];
}

export interface PodmanVolume {
  Name: string;
  Dest: string;
  Options: string[];
}
