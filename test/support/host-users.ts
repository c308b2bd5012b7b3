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

/** Until the end of the test, brig takes this for the user who runs it. */
export function becomeHostUser({ uid, gid }: HostUser): void {
  vi.spyOn(process, "getuid").mockReturnValue(uid);
  vi.spyOn(process, "getgid").mockReturnValue(gid);
}
