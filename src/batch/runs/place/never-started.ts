import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { type Owner, ownerOf, readHostProcesses } from "../../../lib/owner.js";
import type { ContainerBody, Engine } from "../../../sandbox/index.js";
import {
  isDefiniteFailure,
  LABELS,
  removeRecord,
  sessionLabels,
  volumeContainer,
  writeRecord,
} from "../../../sandbox/index.js";
import { readVersion } from "../../../version.js";

/** The engine on which containers are made, and the directory in which they are recorded. */
export interface RecordedPlace {
  engine: Engine;
  brigHome: string;
}

/** A container that is never started: its files are those of the image. It is removed when it is disposed of. */
export async function neverStarted(
  { engine, brigHome }: RecordedPlace,
  image: string,
): Promise<{ id: string } & AsyncDisposable> {
  const owner = await ownerOf(process.pid, await readHostProcesses(hostname()));
  const made = { sessionId: randomUUID(), owner };
  const record = { ...made, endpoint: engine.endpoint, containerId: null, placeholders: [] };
  // If this process dies meanwhile, the next start, or a sweep, removes the container by this record. Nothing else needs the record.
  ignoringFailure(() => writeRecord(brigHome, record));
  const forget = () => ignoringFailure(() => removeRecord(brigHome, made));
  try {
    const id = await engine.createContainer(bodyOf(image, made), { name: `brig-${made.sessionId}` });
    const dispose = async () => {
      await engine.removeContainer(id);
      forget();
    };
    return { id, [Symbol.asyncDispose]: dispose };
  } catch (error) {
    // If the engine has not answered, the container may still appear.
    if (isDefiniteFailure(error)) forget();
    throw error;
  }
}

function ignoringFailure(act: () => void): void {
  try {
    act();
  } catch {
    // This fails on a full disk, for example.
  }
}

function bodyOf(image: string, { sessionId, owner }: { sessionId: string; owner: Owner }): ContainerBody {
  const labels = {
    sessionId,
    version: readVersion(),
    owner,
    createdAt: new Date(),
    leaseSeconds: 60,
  };
  const all = { ...sessionLabels(labels), [LABELS.imageFiles]: "" };
  return volumeContainer({ image, argv: ["/never-started"], labels: all, volume: null });
}
