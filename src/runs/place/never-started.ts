import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import type { ContainerBody, Engine } from "../../docker/engine-types.js";
import { volumeContainer } from "../../images/volume-container.js";
import { ownerOf, readHostProcesses } from "../../lib/owner.js";
import { LABELS, sessionLabels } from "../../sandbox/labels.js";
import { readVersion } from "../../version.js";

/** A container that is never started: its files are those of the image. It is removed when it is disposed of. */
export async function neverStarted(engine: Engine, image: string): Promise<{ id: string } & AsyncDisposable> {
  const id = await engine.createContainer(await bodyOf(image));
  return { id, [Symbol.asyncDispose]: () => engine.removeContainer(id) };
}

/** The labels let a sweep remove it, without a record, if this process dies meanwhile. */
async function bodyOf(image: string): Promise<ContainerBody> {
  const owner = await ownerOf(process.pid, await readHostProcesses(hostname()));
  const labels = {
    sessionId: randomUUID(),
    version: readVersion(),
    owner,
    createdAt: new Date(),
    leaseSeconds: 60,
  };
  const all = { ...sessionLabels(labels), [LABELS.imageFiles]: "" };
  return volumeContainer({ image, argv: ["/never-started"], labels: all, volume: null });
}
