import { lchown, readdir } from "node:fs/promises";
import { userInfo } from "node:os";
import { join } from "node:path";
import { vi } from "vitest";

export interface HostUser {
  uid: number;
  gid: number;
}

/**
 * Whom brig may be run by. What a sandbox refuses has to be refused to both: a command of root's has uid 0, without a
 * capability, and owns what the engine made; anybody else's does not.
 */
export const HOST_USERS: readonly HostUser[] = [
  { uid: 0, gid: 0 },
  { uid: 1234, gid: 4321 },
];

/** Not what a test pretends: who this process is. */
const { uid, gid } = userInfo();

/** Those of them who can have files of the host: only root gives its own away. */
export const OWNING_USERS = uid === 0 ? HOST_USERS : [{ uid, gid }];

/** Until the end of the test, brig takes this for the user who runs it, and `directory` and workspaces are theirs. */
export function becomeHostUser({ uid, gid }: HostUser): void {
  vi.spyOn(process, "getuid").mockReturnValue(uid);
  vi.spyOn(process, "getgid").mockReturnValue(gid);
}

/** Makes a tree of the host the property of the user whom brig takes to be running it. */
export async function giveToHostUser(path: string): Promise<void> {
  if (uid !== 0) return;
  await lchown(path, process.getuid?.() ?? 0, process.getgid?.() ?? 0);
  const below = await readdir(path, { recursive: true });
  for (const name of below) await lchown(join(path, name), process.getuid?.() ?? 0, process.getgid?.() ?? 0);
}
