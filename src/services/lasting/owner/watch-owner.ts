import { spawn } from "node:child_process";
import { join } from "node:path";
import type { Environment } from "../../../lib/env.js";
import { packageRoot } from "../../../package-root.js";

/** Set for an owner that has been watched since before it was started. */
const WATCHED = "BRIG_WATCHED";

/**
 * Waits for a line. If its input ends before there is one, whoever was to write it was killed: it runs the next owner, and another one each time
 * that one is killed (SIGKILL) or has crashed (SIGABRT, SIGSEGV), but not for ever.
 */
const WATCH =
  'read -r line || until "$@" </dev/null; do case $? in 134 | 137 | 139) tried=$((tried + 1)); [ "$tried" -lt 1000 ] || break ;; *) break ;; esac; done';

/**
 * Has another owner started at once if this process is killed. Until then a shell of less than a megabyte waits for it. It has to be told of an
 * orderly end, which disposing does.
 */
export function watchOwner({ brigHome, variables }: Pick<Environment, "brigHome" | "variables">): Disposable {
  if (variables[WATCHED] !== undefined) return { [Symbol.dispose]: () => undefined };
  const program = join(packageRoot, "dist/cli/main.js");
  const watcher = spawn("/bin/sh", ["-c", WATCH, "brig-watch", process.execPath, program, "owner"], {
    ...{ detached: true, cwd: "/", env: { ...variables, BRIG_HOME: brigHome, [WATCHED]: "1" } },
    stdio: ["pipe", "ignore", "inherit"],
  });
  // Without it, the next command of brig starts another owner.
  watcher.on("error", () => undefined);
  watcher.stdin.on("error", () => undefined);
  watcher.unref();
  return { [Symbol.dispose]: () => void watcher.stdin.end("ended\n") };
}
