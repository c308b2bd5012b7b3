import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { BrigError, invalidUsage } from "../../../errors.js";
import { systemReason } from "../../../lib/errno.js";
import { acquireLock } from "../../../lib/file-lock.js";
import { makeDirectory } from "../../../lib/files/make-directory.js";
import type { ListenAddress } from "../../../lib/http/listen.js";
import { keptDirectories } from "./kept-records.js";

/**
 * How long the sandboxes of a service run on that is not there. Long enough for an upgrade; after that they end by themselves, whatever has
 * become of the service.
 */
export const KEPT_LEASE_SECONDS = 600;

/** Where a service has what the next one with the same address needs to go on with its sandboxes. */
export interface KeptHome extends Disposable {
  directory: string;
  /** Whether its sandboxes stay when it ends. Otherwise it only ends those of an earlier one. */
  keeps: boolean;
  /** The directories of an earlier service's sandboxes. */
  earlier: readonly string[];
}

/**
 * Takes the place of the services that listen there. Null if this one keeps no sandboxes, and there are none of an earlier one.
 * Errors: `usage.invalid` if another service that keeps its sandboxes has it; `store.failed`.
 */
export async function openKeptHome(
  brigHome: string,
  { listen, keeps }: { listen: ListenAddress; keeps: boolean },
): Promise<KeptHome | null> {
  const address = addressText(listen);
  const directory = join(brigHome, "serve", directoryName(listen));
  if (!keeps && !existsSync(directory)) return null;
  try {
    for (const path of [brigHome, join(brigHome, "serve"), directory])
      await makeDirectory(path, { mode: 0o700 });
    const outcome = await acquireLock(join(directory, "service"));
    if (outcome.kind === "held") {
      const earlier = keptDirectories(directory);
      return { directory, keeps, earlier, [Symbol.dispose]: () => outcome.lock.release() };
    }
    if (!keeps) return null;
    throw invalidUsage(
      `the process ${outcome.holder.owner.pid} keeps the sandboxes of ${address} in ${brigHome} already`,
      "give this one another --listen, or another BRIG_HOME",
    );
  } catch (cause) {
    if (cause instanceof BrigError) throw cause;
    throw new BrigError(`sandboxes cannot be kept in ${directory}: ${systemReason(cause)}`, {
      code: "store.failed",
      cause,
    });
  }
}

/** Where the minutes of clients are kept. Null for a service whose address is another one each time. */
export function minutesPath(brigHome: string, listen: ListenAddress): string | null {
  if (listen.kind === "port" && listen.port === 0) return null;
  return join(brigHome, "serve", `${directoryName(listen)}.minutes.json`);
}

function addressText(address: ListenAddress): string {
  return address.kind === "socket" ? `unix:${address.path}` : `${address.host}:${address.port}`;
}

/** A path may be longer than a name of a file. */
function directoryName(address: ListenAddress): string {
  if (address.kind === "port") return `${encodeURIComponent(address.host)}-${address.port}`;
  return `unix-${createHash("sha256").update(address.path).digest("hex").slice(0, 32)}`;
}
