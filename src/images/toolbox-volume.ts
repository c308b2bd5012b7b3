import type { ContainerBody, Engine } from "../docker/types.js";
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
  if (!(await isComplete(engine, volume))) {
    await withLock(volume.name, async () => {
      if (!(await isComplete(engine, volume))) await fill(engine, volume);
    });
  }
  return volume.name;
}

/** The name of the volume for this toolbox image, whether it is there or not. */
export function toolboxVolumeName(toolboxTag: string): string {
  return volumeOf(toolboxTag).name;
}

/** Whether a complete copy of this toolbox image is there. */
export async function hasToolboxVolume(engine: Engine, toolboxTag: string): Promise<boolean> {
  return await isComplete(engine, volumeOf(toolboxTag));
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

async function isComplete(engine: Engine, { name, marker }: ToolboxVolume): Promise<boolean> {
  const found = await Promise.all([name, marker].map((one) => engine.inspectVolume(one)));
  return !found.includes(null);
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

/** Creating the container fills an empty volume; its programs run only from a whole copy. */
async function works(engine: Engine, volume: ToolboxVolume): Promise<boolean> {
  for (const [exitCode, ...command] of [
    [0, "runner", "version"],
    [0, "rg", "--version"],
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
