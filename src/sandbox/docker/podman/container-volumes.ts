import { isBrigError } from "../../../errors.js";
import { array, nullish, object, read, type Shaped, string } from "../../../lib/json/json-shape.js";
import { pathOf } from "../calls/containers.js";
import { type Client, nullIfMissing } from "../client.js";
import type { Engine } from "../engine-types.js";
import { isMemoryVolume } from "./memory-volumes.js";

interface ContainerVolumes {
  /** Notes the volumes that were made for a container. `container` is its id, or its name if Podman did not say the id. */
  remember(container: string, volumes: readonly string[]): void;
  /** Call it before a container is removed. Asks Podman for its volumes if another process made them or if the id was not known. */
  find(container: string, options?: { signal?: AbortSignal }): Promise<void>;
  /** Removes the volumes. Call it after the container is gone. Error: the engine's, and then it can be called again. */
  remove(container: string): Promise<void>;
}

/** The volumes in memory that were made for containers, and that go with them. */
export function containerVolumes(
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
