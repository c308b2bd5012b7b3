import { randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BrigError, isBrigError } from "../../../errors.js";
import { array, nullish, object, read, type Shaped, string } from "../../../lib/json/json-shape.js";
import { pathOf } from "../calls/containers.js";
import { type Client, nullIfMissing } from "../client.js";
import { asRefusal, isDefiniteFailure } from "../engine-failure.js";
import type { ContainerBody, Engine } from "../engine-types.js";
import { createMemoryVolumes, isMemoryVolume, planMemory } from "./memory-volumes.js";
import { asPodmanSpec, type PodmanSpec } from "./podman-spec.js";

type Containers = Pick<Engine, "createContainer" | "removeContainer" | "waitRemoved">;

/** Calls that Podman accepts in Docker's form. */
type Docker = Pick<
  Engine,
  "removeContainer" | "waitRemoved" | "createVolume" | "listVolumes" | "removeVolume" | "inspectImage"
>;

/** The calls that differ for Podman. Removing a container also removes the volumes that its creation made. */
export function podmanContainers({ call }: Pick<Client, "call">, docker: Docker): Containers {
  const labelled = labelledVolumes(call, docker);
  const own = containerVolumes(call, docker);

  async function create(body: PodmanSpec): Promise<string> {
    const reply = await call(`create a container from ${body.raw_image_name}`, (api, limit) =>
      api.json({ method: "POST", version: OWN_API, path: "/libpod/containers/create", body }, limit),
    );
    return read(created, reply).Id;
  }

  return {
    async createContainer(body, { name = `brig-${randomBytes(8).toString("hex")}` } = {}) {
      const image = await docker.inspectImage(body.Image);
      if (image === null) throw noSuchImage(body.Image);
      const memory = planMemory(body.HostConfig.Tmpfs, name);
      const spec = asPodmanSpec(body, { name, imageId: image.id, memory });
      await labelled.create(body);
      await createMemoryVolumes(memory.volumes, { labels: body.Labels, engine: docker });
      const volumes = memory.volumes.map((volume) => volume.Name);
      const id = await withSeccompFile(spec, create).catch(async (error) => {
        // If they were removed, a container that Podman is still about to create would get other ones, on the disk and without limits.
        if (!isDefiniteFailure(error)) own.remember(name, volumes);
        else await Promise.allSettled(volumes.map((volume) => docker.removeVolume(volume)));
        throw error;
      });
      own.remember(id, volumes);
      await labelled.prepare(id, body);
      return id;
    },

    async removeContainer(id, options) {
      await own.find(id, options);
      await docker.removeContainer(id, options);
      await own.remove(id);
    },

    async waitRemoved(id, options) {
      await own.find(id, options);
      await docker.waitRemoved(id, options);
      await own.remove(id);
    },
  };
}

const created = object({ Id: string });

function noSuchImage(image: string): BrigError {
  return new BrigError(`cannot create a container from ${image}: there is no such image`, {
    code: "image.missing",
    hint: "pull or build the image first; brig's own images: brig image build",
  });
}

/** The oldest version of Podman's own API that Podman 5 still takes. */
export const OWN_API = "4.0.0";

/**
 * Calls `create` with a request that Podman understands. Docker takes a seccomp profile as JSON in the request;
 * Podman takes the path of a file, which it reads while it creates the container, and which only this user can
 * change. So the engine has to be on this machine.
 */
export async function withSeccompFile<T>(
  spec: PodmanSpec,
  create: (spec: PodmanSpec) => Promise<T>,
): Promise<T> {
  const profile = spec.seccomp_profile_path;
  if (!profile?.startsWith("{")) return await create(spec);
  const directory = await mkdtemp(join(tmpdir(), "brig-seccomp-"));
  try {
    const file = join(directory, "profile.json");
    await writeFile(file, profile, { mode: 0o600 });
    return await create({ ...spec, seccomp_profile_path: file });
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

interface LabelledVolumes {
  /** Makes the volumes. Call it before the container is created. */
  create(body: ContainerBody): Promise<void>;
  /** Gives the volumes their owner and mode. Call it after the container is created. */
  prepare(id: string, body: ContainerBody): Promise<void>;
}

/**
 * New volumes with labels. Docker makes them with the container that is the first to have them, and gives them the owner and the mode of the
 * directory of the image. Podman takes no labels there, and gives the owner and the mode when it gets a container ready to start. If this
 * process is killed in between, Podman will give the volume to the user of the next container that has it.
 */
function labelledVolumes(
  call: Client["call"],
  { createVolume }: Pick<Engine, "createVolume">,
): LabelledVolumes {
  const labelled = ({ HostConfig: { Mounts } }: ContainerBody) =>
    Mounts.flatMap(({ Source, VolumeOptions }) =>
      Source !== undefined && VolumeOptions?.Labels !== undefined
        ? [{ volume: Source, labels: VolumeOptions.Labels }]
        : [],
    );

  return {
    async create(body) {
      await Promise.all(labelled(body).map(({ volume, labels }) => createVolume(volume, labels)));
    },

    async prepare(id, body) {
      if (labelled(body).length === 0) return;
      const path = `/libpod${pathOf(id)}/init`;
      await call("get the container ready to start", (api, limit) =>
        ignoreRefusal(api.json({ method: "POST", version: OWN_API, path }, limit)),
      );
    },
  };
}

/** A refusal is ignored: Podman has prepared the volumes before it notices that the container's program does not exist. */
async function ignoreRefusal(answer: Promise<unknown>): Promise<void> {
  try {
    await answer;
  } catch (error) {
    if (asRefusal(error) === null) throw error;
  }
}

interface ContainerVolumes {
  /** Notes the volumes that were made for a container. `container` is its id, or its name if Podman did not say the id. */
  remember(container: string, volumes: readonly string[]): void;
  /** Call it before a container is removed. Asks Podman for its volumes if another process made them or if the id was not known. */
  find(container: string, options?: { signal?: AbortSignal }): Promise<void>;
  /** Removes the volumes. Call it after the container is gone. Error: the engine's, and then it can be called again. */
  remove(container: string): Promise<void>;
}

/** The volumes in memory that were made for containers, and that go with them. */
function containerVolumes(
  call: Client["call"],
  { removeVolume }: Pick<Engine, "removeVolume">,
): ContainerVolumes {
  const known = new Map<string, readonly string[]>();

  return {
    remember(container, volumes) {
      known.set(container, volumes);
    },

    async find(container, { signal } = {}) {
      if (known.has(container)) return;
      try {
        const found = await call(
          "inspect the container's volumes",
          (api, limit) =>
            nullIfMissing(api.json({ method: "GET", path: `${pathOf(container)}/json` }, limit)),
          { signal },
        );
        if (found === null) return;
        const inspected = read(withMounts, found);
        known.set(container, memoryVolumesOf(inspected));
        known.delete(nameOf(inspected));
      } catch (error) {
        // A container can be removed even if Podman cannot say what it has. `brig gc` finds the volumes by their labels.
        if (!isBrigError(error, "engine.failed")) throw error;
      }
    },

    async remove(container) {
      await Promise.all((known.get(container) ?? []).map((volume) => removeVolume(volume)));
      known.delete(container);
    },
  };
}

const withMounts = object({ Name: string, Mounts: nullish(array(object({ Name: nullish(string) }))) });

/** The volumes that were made for this container alone: others could be mounted in it too. */
function memoryVolumesOf(inspected: Shaped<typeof withMounts>): string[] {
  const name = nameOf(inspected);
  return (inspected.Mounts ?? [])
    .map((mount) => mount.Name ?? "")
    .filter((volume) => isMemoryVolume(volume, name));
}

function nameOf({ Name }: Shaped<typeof withMounts>): string {
  return Name.replace(/^\//, "");
}
