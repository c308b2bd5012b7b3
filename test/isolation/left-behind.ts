import { lstat, readdir } from "node:fs/promises";
import { join } from "node:path";

/** A shell script that tries to leave, in its directory, what acts with the rights of another user. Each line is an attempt. */
export const LEAVE_THINGS = `
mknod device c 1 11
cp /bin/true program; chmod 4755 program
install -m 2755 /bin/true group-program
python3 -c "import os; os.close(os.open('made-so', os.O_CREAT | os.O_WRONLY, 0o4755))"
touch given; chown 4711:4711 given
mkfifo fifo
true`;

/** Which of those things are below a directory of the host. "setuid-program" is the test's own. */
export async function thingsLeft(directory: string, uid: number): Promise<string[]> {
  const found = new Set<string>();
  for (const name of await readdir(directory, { recursive: true })) {
    if (name === "setuid-program") continue;
    const status = await lstat(join(directory, name));
    if (status.isCharacterDevice() || status.isBlockDevice()) found.add("device");
    if (status.isFile() && (status.mode & 0o6000) !== 0) found.add("setuid file");
    if (status.uid !== uid) found.add("file of another user");
  }
  return [...found].sort();
}
