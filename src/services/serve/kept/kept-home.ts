import { createHash, randomBytes } from "node:crypto";
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { BrigError, invalidUsage } from "../../../errors.js";
import { systemReason } from "../../../lib/errno.js";
import { acquireLock } from "../../../lib/file-lock.js";
import { makeDirectory, makeDirectorySync } from "../../../lib/files/make-directory.js";
import { isOwnDirectory, ownUid } from "../../../lib/files/own-directory.js";
import { readTextNow } from "../../../lib/files/read-text-now.js";
import type { ListenAddress } from "../../../lib/http/listen.js";
import { SEAL_BYTES } from "../../../lib/seal.js";
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
  /** Whether those stay that have secrets, too. */
  keepsSecrets: boolean;
  /** The key with which their secrets are sealed there, also those of an earlier service. Default: there is none. */
  sealKey: Buffer | undefined;
  /** The directories of an earlier service's sandboxes. */
  earlier: readonly string[];
}

/**
 * Takes the place of the services that listen there. Null if this one keeps no sandboxes, and there are none of an earlier one.
 * Errors: `usage.invalid` if another service that keeps its sandboxes has it; `store.failed`.
 */
export async function openKeptHome(
  brigHome: string,
  { listen, keeps, keepsSecrets }: { listen: ListenAddress; keeps: boolean; keepsSecrets: boolean },
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
      const sealKey = readSealKey(directory) ?? (keepsSecrets ? makeSealKey(directory) : undefined);
      return {
        ...{ directory, keeps, keepsSecrets, sealKey, earlier },
        [Symbol.dispose]() {
          if (keptDirectories(directory).length === 0) removeSealKey(directory);
          outcome.lock.release();
        },
      };
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

function readSealKey(home: string): Buffer | undefined {
  for (const file of sealKeyFiles(home)) {
    const [, hex] = /^([0-9a-f]{64})\n$/.exec(readTextNow(file, 2 * SEAL_BYTES + 1) ?? "") ?? [];
    if (hex !== undefined) return Buffer.from(hex, "hex");
  }
  return undefined;
}

function makeSealKey(home: string): Buffer {
  const key = randomBytes(SEAL_BYTES);
  const [file = join(home, KEY_FILE)] = sealKeyFiles(home);
  makeDirectorySync(dirname(file), { mode: 0o700 });
  rmSync(file, { force: true });
  writeFileSync(file, `${key.toString("hex")}\n`, { mode: 0o600, flag: "wx" });
  return key;
}

function removeSealKey(home: string): void {
  for (const file of sealKeyFiles(home)) rmSync(file, { force: true });
}

const KEY_FILE = "seal-key";

/**
 * Where the key may be, the best place first: in memory, so that neither a disk nor its copies ever have both the secrets and the key. Others may make
 * directories in `/dev/shm`, which are not used.
 */
function sealKeyFiles(home: string): string[] {
  const name = `serve-${createHash("sha256").update(home).digest("hex").slice(0, 32)}`;
  const runtime = `/run/user/${ownUid()}`;
  const inMemory = [...(isOwnDirectory(runtime) ? [runtime] : []), "/dev/shm"]
    .filter((above) => existsSync(above))
    .map((above) => join(above, `brig-${ownUid()}`))
    .filter((directory) => !existsSync(directory) || isOwnDirectory(directory));
  return [...inMemory.map((directory) => join(directory, name)), join(home, KEY_FILE)];
}

function addressText(address: ListenAddress): string {
  return address.kind === "socket" ? `unix:${address.path}` : `${address.host}:${address.port}`;
}

/** A path may be longer than a name of a file. */
function directoryName(address: ListenAddress): string {
  if (address.kind === "port") return `${encodeURIComponent(address.host)}-${address.port}`;
  return `unix-${createHash("sha256").update(address.path).digest("hex").slice(0, 32)}`;
}
