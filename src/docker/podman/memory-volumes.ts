import type { ContainerBody, Engine } from "../engine-types.js";

/** The label of a volume in memory. Its value is where the volume is mounted. */
export const memoryLabel = "brig.memory";

const pageBytes = 4096;

interface MemoryVolumes {
  body: ContainerBody;
  /** Their names. */
  volumes: string[];
}

/**
 * Creates a volume for each writable tmpfs mount of the body, and returns the body with these instead. Podman takes
 * neither an owner nor a limit of files for a tmpfs mount of a container, but both for a volume that is a tmpfs. Such a
 * volume needs memory only while a container that has it runs. Nobody can make files in a read-only tmpfs mount,
 * so that needs neither. Error: the engine's, and then no volume is left if it can be helped.
 */
export async function createMemoryVolumes(
  body: ContainerBody,
  { name, engine }: { name: string; engine: Pick<Engine, "createVolume" | "removeVolume"> },
): Promise<MemoryVolumes> {
  const mounts = Object.entries(body.HostConfig.Tmpfs).map(([path, options]) => ({
    path,
    options: options.split(","),
  }));
  const readOnly = mounts.filter(({ options }) => options.includes("ro"));
  const writable = mounts
    .filter(({ options }) => !options.includes("ro"))
    .map((mount, index) => ({ ...mount, volume: `${name}-memory-${index}` }));
  const made = await Promise.allSettled(
    writable.map(({ volume, path, options }) =>
      engine.createVolume(
        volume,
        { ...body.Labels, [memoryLabel]: path },
        { type: "tmpfs", device: "tmpfs", o: volumeOptions(options) },
      ),
    ),
  );
  const volumes = writable.map(({ volume }) => volume);
  const failed = made.find((one) => one.status === "rejected");
  if (failed !== undefined) {
    await Promise.allSettled(volumes.map((volume) => engine.removeVolume(volume)));
    throw failed.reason;
  }
  const HostConfig = {
    ...body.HostConfig,
    Tmpfs: Object.fromEntries(readOnly.map(({ path, options }) => [path, readOnlyOptions(options)])),
    Binds: writable.map(({ volume, path, options }) => `${volume}:${path}:${mountFlags(options)}`),
  };
  return { body: { ...body, HostConfig }, volumes };
}

/** Podman 4 reads `size` as a quota of the disk, which it refuses where the disk has none. */
function volumeOptions(options: readonly string[]): string {
  return options.map(inBlocks).join(",");
}

function inBlocks(option: string): string {
  if (!option.startsWith("size=")) return option;
  return `nr_blocks=${Math.ceil(Number(option.slice("size=".length)) / pageBytes)}`;
}

function mountFlags(options: readonly string[]): string {
  return [...options.filter((option) => !option.includes("=")), "nocopy"].join(",");
}

/** Without the last one Podman would copy what the image has at the path. */
function readOnlyOptions(options: readonly string[]): string {
  return [...options.filter((option) => !option.startsWith("nr_inodes=")), "notmpcopyup"].join(",");
}
