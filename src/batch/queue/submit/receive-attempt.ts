import { randomBytes } from "node:crypto";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { BrigError } from "../../../errors.js";
import { pause } from "../../../lib/time/pause.js";
import { writeResult } from "../../runs/attempt/result-file.js";
import type { AttemptOrder } from "../../runs/batch/run-batch.js";
import type { AttemptResult } from "../../runs/results/attempt-result.js";
import { parseResult } from "../../runs/results/results-file.js";
import { RESULT_FILE } from "../../runs/results/run-files.js";
import { unpack } from "../bundle/unpack.js";
import type { ObjectStore } from "../store/object-store.js";

const MAX_BYTES = 4 * 1024 ** 3;
/** A network file system may show a new file to other machines only after a while. */
const LOOKS = 60;
const LOOK_EVERY_MS = 1000;

/** Brings the folder of an attempt from the store. Its `result.json` is written last. Error: `store.failed`. */
export async function receiveAttempt(
  store: ObjectStore,
  { key, order, folder }: { key: string; order: AttemptOrder; folder: string },
): Promise<AttemptResult> {
  const { task, attempt, tries } = order;
  // A name that the next run in this folder removes if this one is killed.
  const archive = join(folder, `result.${randomBytes(6).toString("hex")}.new`);
  try {
    await fetchSoon(store, { key, archive });
    const kept = await unpack(archive, {
      into: order.folder,
      allowsLinks: false,
      keeps: [RESULT_FILE],
      maxBytes: MAX_BYTES,
    });
    const result = parseResult(kept.get(RESULT_FILE)?.toString() ?? "");
    if (result === null || result.task !== task.name || result.attempt !== attempt)
      throw notItsResult(key, store);
    if (result.taskChecksum !== task.checksum) throw notItsResult(key, store);
    const complete = { ...result, tries };
    await writeResult(order.folder, complete);
    return complete;
  } finally {
    await rm(archive, { force: true });
  }
}

async function fetchSoon(
  store: ObjectStore,
  { key, archive }: { key: string; archive: string },
): Promise<void> {
  for (let looks = 1; ; looks++) {
    if ((await store.get(key, archive, { maxBytes: MAX_BYTES })) === "fetched") return;
    if (looks === LOOKS)
      throw new BrigError(`a worker has put ${key} into its store, and it is not in ${store.name}`, {
        code: "store.failed",
        hint: "give this command and all workers the same --results",
      });
    await pause(LOOK_EVERY_MS);
  }
}

function notItsResult(key: string, { name }: ObjectStore): BrigError {
  return new BrigError(`${key} in ${name} is not the result of the attempt that it is kept for`, {
    code: "store.failed",
    hint: "remove it from the store, and run the same command again",
  });
}
