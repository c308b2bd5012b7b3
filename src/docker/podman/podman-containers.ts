import { randomBytes } from "node:crypto";
import type { Engine } from "../engine-types.js";
import { createMemoryVolumes } from "./memory-volumes.js";
import { asPodmanTakesIt } from "./podman-body.js";
import { withSeccompFile } from "./seccomp-file.js";

type Containers = Pick<Engine, "createContainer" | "removeContainer" | "waitRemoved">;
type Volumes = Pick<Engine, "createVolume" | "listVolumes" | "removeVolume">;

/** The calls that differ for Podman. Removing a container also removes the volumes that its creation made. */
export function podmanContainers(containers: Containers, volumes: Volumes): Containers {
  const volumesOf = new Map<string, string[]>();

  async function removeVolumes(id: string): Promise<void> {
    const names = volumesOf.get(id) ?? [];
    await Promise.all(names.map((name) => volumes.removeVolume(name)));
    volumesOf.delete(id);
  }

  return {
    async createContainer(body, options) {
      const name = options?.name ?? `brig-${randomBytes(8).toString("hex")}`;
      const memory = await createMemoryVolumes(asPodmanTakesIt(body), { name, engine: volumes });
      try {
        const id = await withSeccompFile(memory.body, (inFile) =>
          containers.createContainer(inFile, { ...options, name }),
        );
        volumesOf.set(id, memory.volumes);
        return id;
      } catch (error) {
        await Promise.allSettled(memory.volumes.map((volume) => volumes.removeVolume(volume)));
        throw error;
      }
    },

    async removeContainer(id, options) {
      await containers.removeContainer(id, options);
      await removeVolumes(id);
    },

    async waitRemoved(id, options) {
      await containers.waitRemoved(id, options);
      await removeVolumes(id);
    },
  };
}
