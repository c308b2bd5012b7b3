import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { rmSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import type { Environment } from "../../../lib/env.js";
import { ownerOf, readHostProcesses } from "../../../lib/owner.js";
import { SEAL_BYTES } from "../../../lib/seal.js";
import { packageRoot } from "../../../package-root.js";
import { watcherFile } from "../home/lasting-records.js";

/** Set for an owner that has been watched since before it was started. */
const WATCHED = "BRIG_WATCHED";

/**
 * Reads the key, and waits for another line. If its input ends before there is one, whoever was to write it was killed: it runs the next owner, which
 * reads the key, and another one each time that one is killed (SIGKILL) or has crashed (SIGABRT, SIGSEGV), but not for ever. The key is only in
 * memory: the shell itself prints it.
 */
const WATCH =
  'unset key line tried; read -r key; read -r line || until printf "%s\\n" "$key" | "$@"; do case $? in 134 | 137 | 139) tried=$((tried + 1)); [ "$tried" -lt 1000 ] || break ;; *) break ;; esac; done';

/**
 * The key with which this owner seals the secrets of its sandboxes in their files. It is written to no file: an owner that is watched has it from the
 * one before, any other makes one.
 */
export async function openSealKey(
  { variables }: Pick<Environment, "variables">,
  stdin: Readable,
): Promise<Buffer> {
  const made = randomBytes(SEAL_BYTES);
  if (variables[WATCHED] === undefined) return made;
  let text = "";
  for await (const piece of stdin) {
    text += String(piece);
    if (text.length > 4 * SEAL_BYTES) return made;
  }
  return /^[0-9a-f]{64}\n$/.test(text) ? Buffer.from(text.trimEnd(), "hex") : made;
}

/**
 * Has another owner started at once if this process is killed. Until then a shell of less than a megabyte waits for it. It has to be told of an
 * orderly end, which disposing does.
 */
export async function watchOwner(
  { brigHome, variables }: Pick<Environment, "brigHome" | "variables">,
  sealKey: Buffer,
): Promise<Disposable> {
  if (variables[WATCHED] !== undefined) return { [Symbol.dispose]: () => undefined };
  const program = join(packageRoot, "dist/cli/main.js");
  const watcher = spawn("/bin/sh", ["-c", WATCH, "brig-watch", process.execPath, program, "owner"], {
    ...{ detached: true, cwd: "/", env: { ...variables, BRIG_HOME: brigHome, [WATCHED]: "1" } },
    stdio: ["pipe", "ignore", "inherit"],
  });
  // Without it, the next command of brig starts another owner.
  watcher.on("error", () => undefined);
  watcher.stdin.on("error", () => undefined);
  watcher.stdin.write(`${sealKey.toString("hex")}\n`);
  watcher.unref();
  const file = watcherFile(brigHome);
  const { pid } = watcher;
  if (pid !== undefined) await noteWatcher(file, pid);
  return {
    [Symbol.dispose]() {
      rmSync(file, { force: true });
      watcher.stdin.end("ended\n");
    },
  };
}

/** Without it, a command that comes between two owners starts one of its own, which is without the key. */
async function noteWatcher(file: string, pid: number): Promise<void> {
  const text = JSON.stringify(await ownerOf(pid, await readHostProcesses(hostname())));
  try {
    writeFileSync(file, text, { mode: 0o600 });
  } catch {
    // The disk is full, of which whoever starts a sandbox is told.
  }
}
