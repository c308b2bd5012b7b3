import { createHash } from "node:crypto";
import { hostname } from "node:os";
import { BrigError } from "../../errors.js";
import type { ContainerBody, Engine, Mount, VolumeSummary } from "../docker/engine-types.js";
import { withLock } from "./lock.js";

/** Where the toolbox is mounted in sandboxes. */
const mountPoint = "/.brig";

/** The label of both volumes of a toolbox; its value is the toolbox's content hash. */
export const toolboxLabel = "brig.toolbox";

/**
 * Returns the volume with the files of this toolbox image. If it is missing, it is filled: the engine copies
 * an image's files into an empty volume. Error: `engine.failed` if no complete copy can be made.
 *
 * An engine that dies during the copy leaves an incomplete volume, and labels cannot be changed. So a second,
 * empty volume records that the first one was checked. It is removed before each filling.
 */
export async function ensureToolboxVolume(
  engine: Engine,
  toolboxTag: string,
  brigHome?: string,
): Promise<string> {
  const volume = volumeOf(toolboxTag);
  const ofHome = brigHome === undefined ? {} : homeLabels(brigHome);
  if ((await findToolbox(engine, toolboxTag)) === null) {
    await withLock(volume.name, async () => {
      if ((await findToolbox(engine, toolboxTag)) === null)
        await fill(engine, volume, { ...ofHome, [toolboxLabel]: volume.hash });
    });
  }
  return volume.name;
}

export interface Toolbox {
  volume: string;
  /** The path on the engine's machine; null if the engine does not say. */
  directory: string | null;
}

/** Null if there is no complete copy of this toolbox image. */
export async function findToolbox(engine: Engine, toolboxTag: string): Promise<Toolbox | null> {
  const { name, marker } = volumeOf(toolboxTag);
  const [volume, mark] = await Promise.all([engine.inspectVolume(name), engine.inspectVolume(marker)]);
  return volume === null || mark === null ? null : toolboxOf(volume);
}

export async function toolboxIn(engine: Engine, volume: string): Promise<Toolbox> {
  const found = await engine.inspectVolume(volume);
  return found === null ? { volume, directory: null } : toolboxOf(found);
}

function toolboxOf({ name, mountpoint }: VolumeSummary): Toolbox {
  return { volume: name, directory: mountpoint || null };
}

interface ToolboxVolume {
  name: string;
  marker: string;
  hash: string;
  toolboxTag: string;
}

function volumeOf(toolboxTag: string): ToolboxVolume {
  const hash = toolboxTag.slice(toolboxTag.lastIndexOf(":") + 1);
  const name = `brig-toolbox-${hash}`;
  return { name, marker: `${name}-complete`, hash, toolboxTag };
}

async function fill(engine: Engine, volume: ToolboxVolume, labels: Record<string, string>): Promise<void> {
  await engine.removeVolume(volume.marker);
  await engine.createVolume(volume.name, labels);
  if (!(await works(engine, volume))) {
    await engine.removeVolume(volume.name);
    await engine.createVolume(volume.name, labels);
    if (!(await works(engine, volume))) throw await cannotFill(engine, volume);
  }
  await engine.createVolume(volume.marker, labels);
}

/** Creating the container fills an empty volume. These programs succeed only if the copy is complete. */
async function works(engine: Engine, volume: ToolboxVolume): Promise<boolean> {
  for (const [exitCode, ...command] of [
    [0, "runner", "version"],
    [0, "rg", "--quiet", "localhost", `${mountPoint}/hosts`],
    [0, "rg", "--quiet", "nameserver", `${mountPoint}/resolv.conf`],
    // Without arguments they print their usage.
    [2, "bin/apply_patch"],
    [2, "attempts"],
    [2, "watch"],
    [2, "runner-files"],
  ] as const) {
    if ((await run(engine, volume, command)) !== exitCode) return false;
  }
  return true;
}

async function run(
  engine: Engine,
  volume: ToolboxVolume,
  [program = "", ...args]: readonly string[],
): Promise<number> {
  const body = volumeContainer({
    image: volume.toolboxTag,
    argv: [`${mountPoint}/${program}`, ...args],
    labels: { [toolboxLabel]: volume.hash },
    volume: { Type: "volume", Source: volume.name, Target: mountPoint, ReadOnly: false },
  });
  const id = await engine.createContainer(body);
  try {
    await engine.startContainer(id);
    return await engine.waitContainer(id);
  } catch (error) {
    if (error instanceof BrigError && error.code === "engine.failed") return 127;
    throw error;
  } finally {
    await engine.removeContainer(id);
  }
}

async function cannotFill(engine: Engine, { name, toolboxTag }: ToolboxVolume): Promise<BrigError> {
  const { blameFullDisk } = await import("../docker/disk/full-disk.js");
  const failure = new BrigError(
    `the volume ${name} could not be filled with a working copy of ${toolboxTag}`,
    {
      code: "engine.failed",
      hint: `check the engine, then: docker volume rm ${name}`,
    },
  );
  return await blameFullDisk(failure, engine);
}

export interface VolumeContainer {
  image: string;
  /** A program and its arguments. */
  argv: readonly string[];
  labels: Record<string, string>;
  /** Null for a container that is only made for the files of its image. */
  volume: Mount | null;
}

/** A container for work on one volume. Creating it copies into an empty volume what the image has at that path. */
export function volumeContainer({ image, argv, labels, volume }: VolumeContainer): ContainerBody {
  return {
    Image: image,
    Entrypoint: argv.slice(0, 1),
    Cmd: argv.slice(1),
    Env: [],
    Labels: labels,
    AttachStdin: false,
    AttachStdout: false,
    AttachStderr: false,
    OpenStdin: false,
    Tty: false,
    HostConfig: {
      AutoRemove: false,
      Privileged: false,
      ReadonlyRootfs: true,
      NetworkMode: "none",
      CgroupnsMode: "private",
      CapDrop: ["ALL"],
      CapAdd: [],
      SecurityOpt: ["no-new-privileges"],
      Mounts: volume === null ? [] : [volume],
      Tmpfs: {},
      LogConfig: { Type: "none", Config: {} },
      RestartPolicy: { Name: "no" },
    },
  };
}

/**
 * The label of what is on the engine without a record in any `$BRIG_HOME`: volumes that sandboxes share. Its value tells to which
 * one it belongs, so that brig of another leaves it alone.
 */
export const homeLabel = "brig.home";

/** Another machine may have the same path, and use the same engine. */
export function homeId(brigHome: string): string {
  return createHash("sha256")
    .update(JSON.stringify([hostname(), brigHome]))
    .digest("hex")
    .slice(0, 16);
}

export function homeLabels(brigHome: string): Record<string, string> {
  return { [homeLabel]: homeId(brigHome) };
}
