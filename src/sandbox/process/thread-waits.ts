import { isBrigError } from "../../errors.js";
import { protocolError } from "../channel/frames.js";
import { WAIT_RECORD_BYTES, WAITS_MAX } from "../channel/protocol.js";
import { run } from "../files/file-request.js";
import { openedSandboxOf, type Sandbox } from "../sandbox.js";

/**
 * For each thread in a sandbox, how many milliseconds it has waited for a processor since it began. Null where the
 * kernel does not count this. Errors: those of every method of a sandbox.
 */
export async function threadWaits(sandbox: Sandbox): Promise<Map<number, number> | null> {
  const { link } = openedSandboxOf(sandbox);
  const context = { link, cwd: "/", env: {}, onStuck: () => undefined };
  try {
    return parseWaits((await run(context, { operation: "waits", path: "" })).result);
  } catch (error) {
    if (isBrigError(error, "file.not-found")) return null;
    throw error;
  }
}

/** Milliseconds by thread, from what the runner has counted in nanoseconds. Error: `protocol.invalid`. */
export function parseWaits(records: Buffer): Map<number, number> {
  const count = records.length / WAIT_RECORD_BYTES;
  if (!Number.isInteger(count) || count > WAITS_MAX) throw protocolError("not a list of waiting threads");
  const waits = new Map<number, number>();
  for (let at = 0; at < records.length; at += WAIT_RECORD_BYTES)
    waits.set(records.readUInt32LE(at), Number(records.readBigUInt64LE(at + 4)) / 1e6);
  return waits;
}
