import { randomBytes } from "node:crypto";
import { BrigError } from "../../../errors.js";
import { object, read, string } from "../../../lib/json/json-shape.js";
import type { Client } from "../client.js";
import { isDefiniteFailure } from "../engine-failure.js";
import type { Engine } from "../engine-types.js";
import { containerVolumes } from "./container-volumes.js";
import { labelledVolumes } from "./labelled-volumes.js";
import { createMemoryVolumes, planMemory } from "./memory-volumes.js";
import { OWN_API } from "./own-api.js";
import { asPodmanSpec, type PodmanSpec } from "./podman-spec.js";
import { withSeccompFile } from "./seccomp-file.js";

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

  async function create(body: PodmanSpec, signal: AbortSignal | undefined): Promise<string> {
    const reply = await call(
      `create a container from ${body.raw_image_name}`,
      (api, limit) =>
        api.json({ method: "POST", version: OWN_API, path: "/libpod/containers/create", body }, limit),
      { signal },
    );
    return read(created, reply).Id;
  }

  return {
    async createContainer(body, { name = `brig-${randomBytes(8).toString("hex")}`, signal } = {}) {
      const image = await docker.inspectImage(body.Image);
      if (image === null) throw noSuchImage(body.Image);
      const memory = planMemory(body.HostConfig.Tmpfs, name);
      const spec = asPodmanSpec(body, { name, imageId: image.id, memory });
      await labelled.create(body);
      await createMemoryVolumes(memory.volumes, { labels: body.Labels, engine: docker });
      const volumes = memory.volumes.map((volume) => volume.Name);
      const id = await withSeccompFile(spec, (inFile) => create(inFile, signal)).catch(async (error) => {
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
