import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, constants, existsSync, fstatSync, openSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { BrigError } from "../../../errors.js";
import type { Environment } from "../../../lib/env.js";
import { holderOf } from "../../../lib/file-lock.js";
import { makeDirectorySync } from "../../../lib/files/make-directory.js";
import { readTextNow } from "../../../lib/files/read-text-now.js";
import { readOrNull } from "../../../lib/json/json-shape.js";
import { parseJson } from "../../../lib/json/parse-json.js";
import { ownerShape, ownerState, readHostProcesses } from "../../../lib/owner.js";
import { pause } from "../../../lib/time/pause.js";
import { brigProgram } from "../../../package-root.js";
import { lastingDirectory, ownerLock, watcherFile } from "../home/lasting-records.js";
import { asBrigError } from "../wire/sent-error.js";

/** A process that was started to be the owner. */
export interface StartingOwner {
  /**
   * What has become of it: it listens, another process is the owner or is to be, or nothing is known of it after so long. Error: the one because of which it could
   * not begin.
   */
  outcome(waitMs: number): Promise<"listening" | "other" | null>;
}

/** Starts the program `brig owner`, which outlives this one. */
export function startOwner(environment: Pick<Environment, "brigHome" | "variables">): StartingOwner {
  const log = openLog(environment.brigHome);
  const [node, program] = brigProgram;
  const child = spawn(node, [program, "owner"], {
    ...{ detached: true, cwd: "/", env: { ...environment.variables, BRIG_HOME: environment.brigHome } },
    stdio: ["ignore", "pipe", log ?? "ignore"],
  });
  if (log !== null) closeSync(log);
  const first = firstLine(child);
  first.catch(() => undefined);
  child.unref();
  return {
    outcome: async (waitMs) => await Promise.race([first, pause(waitMs).then(() => null)]),
  };
}

/**
 * Whether a process is the owner, or is to be: it goes on with sandboxes before it answers, or is started by the one that has watched an owner that
 * was killed. Only that one has the key to the secrets of these sandboxes, so that nobody else may become the owner before.
 */
export async function hasOwner(brigHome: string): Promise<boolean> {
  const directory = lastingDirectory(brigHome);
  if (!existsSync(directory)) return false;
  const processes = await readHostProcesses(hostname());
  if ((await holderOf(ownerLock(brigHome), processes)) !== null) return true;
  const text = readTextNow(watcherFile(brigHome), MAX_WATCHER_BYTES);
  const watcher = readOrNull(ownerShape, parseJson(text ?? ""));
  return watcher !== null && (await ownerState(watcher, processes)) === "alive";
}

const MAX_WATCHER_BYTES = 4096;

/** The owner says in one line what has become of its start. */
async function firstLine(child: ChildProcess): Promise<"listening" | "other"> {
  const killedBy = new Promise<NodeJS.Signals | null>((resolve) =>
    child.once("exit", (_status, signal) => resolve(signal)),
  );
  const text = await new Promise<string>((resolve, reject) => {
    let received = "";
    child.once("error", reject);
    child.stdout?.on("data", (chunk: Buffer) => {
      received += chunk.toString();
      if (received.includes("\n")) resolve(received);
    });
    child.stdout?.once("end", () => resolve(received));
  });
  child.stdout?.destroy();
  const line = parseJson(text) as { state?: string; error?: unknown } | undefined;
  if (line?.state === "listening" || line?.state === "other") return line.state;
  if (line?.error !== undefined) throw asBrigError(line.error);
  // Whoever has killed it has not killed the one that its watcher starts, or the next.
  if ((await killedBy) !== null) return "other";
  throw new BrigError("the process that is to keep the sandboxes has ended before it began", {
    code: "serve.failed",
    hint: "its log is service.log in $BRIG_HOME",
  });
}

const MAX_LOG_BYTES = 1024 * 1024;

/** Begins anew once it is long. Null where nothing can be written, as on a full disk: then there is no log. */
function openLog(brigHome: string): number | null {
  const { O_WRONLY, O_APPEND, O_CREAT, O_NOFOLLOW, O_TRUNC } = constants;
  const path = join(brigHome, "service.log");
  try {
    makeDirectorySync(brigHome, { mode: 0o700 });
    const log = openSync(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW, 0o600);
    if (fstatSync(log).size <= MAX_LOG_BYTES) return log;
    closeSync(log);
    return openSync(path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_TRUNC, 0o600);
  } catch {
    return null;
  }
}
