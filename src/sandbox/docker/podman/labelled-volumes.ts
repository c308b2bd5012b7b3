import { pathOf } from "../calls/containers.js";
import type { Client } from "../client.js";
import { asRefusal } from "../engine-failure.js";
import type { ContainerBody, Engine } from "../engine-types.js";
import { OWN_API } from "./own-api.js";

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
export function labelledVolumes(
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
