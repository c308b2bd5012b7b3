import type { ContainerBody, Engine, VolumeSummary } from "../docker/engine-types.js";
import { BrigError } from "../errors.js";
import { withLock } from "./lock.js";

/** Where sandboxes find the toolbox. */
const mountPoint = "/.brig";

/** Both volumes of a toolbox carry this label, with the toolbox's content hash as its value. */
export const toolboxLabel = "brig.toolbox";

/**
 * The name of the volume that holds the files of this toolbox image. Fills it when it is missing: the engine copies the
 * image's files into an empty volume. Errors: `engine.failed` when no complete copy can be made.
 *
 * An engine that dies while it copies leaves half a volume behind, and a volume's labels cannot be changed later. So a
 * second, empty volume says that the first was checked after it was filled; it is removed before every filling.
 */
export async function ensureToolboxVolume(engine: Engine, toolboxTag: string): Promise<string> {
  const volume = volumeOf(toolboxTag);
  if ((await findToolbox(engine, toolboxTag)) === null) {
    await withLock(volume.name, async () => {
      if ((await findToolbox(engine, toolboxTag)) === null) await fill(engine, volume);
    });
  }
  return volume.name;
}

/** A volume with a toolbox's files. */
export interface Toolbox {
  volume: string;
  /** Where the engine's machine has them; null where it does not say. */
  directory: string | null;
}

/** Null when there is no complete copy of this toolbox image. */
export async function findToolbox(engine: Engine, toolboxTag: string): Promise<Toolbox | null> {
  const { name, marker } = volumeOf(toolboxTag);
  const [volume, mark] = await Promise.all([engine.inspectVolume(name), engine.inspectVolume(marker)]);
  return volume === null || mark === null ? null : asToolbox(volume);
}

export async function toolboxIn(engine: Engine, volume: string): Promise<Toolbox> {
  const found = await engine.inspectVolume(volume);
  return found === null ? { volume, directory: null } : asToolbox(found);
}

function asToolbox({ name, mountpoint }: VolumeSummary): Toolbox {
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

async function fill(engine: Engine, volume: ToolboxVolume): Promise<void> {
  await engine.removeVolume(volume.marker);
  await engine.createVolume(volume.name, { [toolboxLabel]: volume.hash });
  if (!(await works(engine, volume))) {
    await engine.removeVolume(volume.name);
    await engine.createVolume(volume.name, { [toolboxLabel]: volume.hash });
    if (!(await works(engine, volume))) throw unusable(volume);
  }
  await engine.createVolume(volume.marker, { [toolboxLabel]: volume.hash });
}

/** Creating the container fills an empty volume; its programs run, and its files are found, only in a whole copy. */
async function works(engine: Engine, volume: ToolboxVolume): Promise<boolean> {
  for (const [exitCode, ...command] of [
    [0, "runner", "version"],
    [0, "rg", "--quiet", "localhost", `${mountPoint}/hosts`],
    // Without a patch it says how it is used.
    [2, "bin/apply_patch"],
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
  const id = await engine.createContainer(checkBody(volume, [`${mountPoint}/${program}`, ...args]));
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

function checkBody({ name, hash, toolboxTag }: ToolboxVolume, argv: string[]): ContainerBody {
  return {
    Image: toolboxTag,
    Entrypoint: argv.slice(0, 1),
    Cmd: argv.slice(1),
    Env: [],
    Labels: { [toolboxLabel]: hash },
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
      Mounts: [{ Type: "volume", Source: name, Target: mountPoint, ReadOnly: false }],
      Tmpfs: {},
      LogConfig: { Type: "none", Config: {} },
      RestartPolicy: { Name: "no" },
    },
  };
}

function unusable({ name, toolboxTag }: ToolboxVolume): BrigError {
  return new BrigError(`the volume ${name} does not hold a working copy of ${toolboxTag}`, {
    code: "engine.failed",
    hint: `is the engine's disk full? then: docker volume rm ${name}`,
  });
}
