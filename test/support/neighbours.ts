import type { Readable } from "node:stream";

/** What the commands of a hostile sandbox do to whoever shares the machine. Each goes on until it is ended, or reaches its limit again and again. */
export const HOSTILE = {
  "fork bomb": "f() { while :; do (f) & done 2>/dev/null; }; f",
  "memory bomb": `while :; do python3 -c 'x = []
while True: x.append(bytearray(b"x" * (16 << 20)))'; done`,
  "tmpfs fill": "while :; do head -c 4G /dev/zero > /tmp/fill; rm -f /tmp/fill; done",
  "output flood": "yes | head -c 100G",
  "inode fill": `exec python3 -c '
import os
while True:
    try:
        for i in range(10**9): os.close(os.open(f"/tmp/{i}", os.O_CREAT))
    except OSError:
        for name in os.listdir("/tmp"): os.unlink(f"/tmp/{name}")'`,
} as const;

/**
 * Other values of workspace-write for those who are hostile: smaller than usual, so that each limit is reached soon. Processor time is limited
 * by nothing but the others' share.
 */
export const HOSTILE_LIMITS = { memoryMb: 512, pids: 128, sizeMb: 64, shmMb: 16 };

/** As much of a sandbox as this needs. */
interface Commands {
  spawn(argv: readonly string[]): Promise<{
    stdout: Readable;
    stderr: Readable | null;
    exit: Promise<unknown>;
    kill(): Promise<void>;
  }>;
}

export type Hostility = keyof typeof HOSTILE;

/** Begins it, and returns how to end it. Its output is read and thrown away, as a host does that shows the end of it. */
export async function beginHostility(sandbox: Commands, name: Hostility): Promise<() => Promise<void>> {
  const hostile = await sandbox.spawn(["bash", "-c", HOSTILE[name]]);
  hostile.stdout.resume();
  hostile.stderr?.resume();
  return async () => {
    await hostile.kill();
    await hostile.exit;
  };
}
