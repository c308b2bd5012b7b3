import { randomBytes } from "node:crypto";
import { BrigError } from "../../errors.js";
import { object, read, string } from "../../lib/json/json-shape.js";
import type { Client } from "../client.js";
import type { Engine } from "../engine-types.js";
import { createMemoryVolumes, planMemory } from "./memory-volumes.js";
import { asPodmanSpec, type PodmanSpec } from "./podman-spec.js";
import { withSeccompFile } from "./seccomp-file.js";

type Containers = Pick<Engine, "createContainer" | "removeContainer" | "waitRemoved">;

/** Of these calls Podman takes Docker's form. */
type Docker = Pick<
  Engine,
  "removeContainer" | "waitRemoved" | "createVolume" | "listVolumes" | "removeVolume" | "inspectImage"
>;

/** The oldest version of Podman's own API that Podman 5 still takes. */
const OWN_API = "4.0.0";

/** The calls that differ for Podman. Removing a container also removes the volumes that its creation made. */
export function podmanContainers({ call }: Pick<Client, "call">, docker: Docker): Containers {
  const volumesOf = new Map<string, string[]>();

  async function create(body: PodmanSpec, signal: AbortSignal | undefined): Promise<string> {
    const reply = await call(
      `create a container from ${body.raw_image_name}`,
      (api, limit) =>
        api.json({ method: "POST", version: OWN_API, path: "/libpod/containers/create", body }, limit),
      { signal },
    );
    return read(created, reply).Id;
  }

  async function removeVolumes(id: string): Promise<void> {
    const names = volumesOf.get(id) ?? [];
    await Promise.all(names.map((name) => docker.removeVolume(name)));
    volumesOf.delete(id);
  }

  return {
    async createContainer(body, { name = `brig-${randomBytes(8).toString("hex")}`, signal } = {}) {
      const image = await docker.inspectImage(body.Image);
      if (image === null) throw noSuchImage(body.Image);
      const memory = planMemory(body.HostConfig.Tmpfs, name);
      const spec = asPodmanSpec(body, { name, imageId: image.id, memory });
      await createMemoryVolumes(memory.volumes, { labels: body.Labels, engine: docker });
      const names = memory.volumes.map((volume) => volume.Name);
      try {
        const id = await withSeccompFile(spec, (inFile) => create(inFile, signal));
        volumesOf.set(id, names);
        return id;
      } catch (error) {
        await Promise.allSettled(names.map((volume) => docker.removeVolume(volume)));
        throw error;
      }
    },

    async removeContainer(id, options) {
      await docker.removeContainer(id, options);
      await removeVolumes(id);
    },

    async waitRemoved(id, options) {
      await docker.waitRemoved(id, options);
      await removeVolumes(id);
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
