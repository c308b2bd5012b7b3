import { lstatSync, type Stats } from "node:fs";
import { BrigError } from "../../errors.js";
import type { EngineInfo } from "../docker/engine-types.js";
import { isRootless } from "../docker/rootless.js";
import type { Root } from "../plan/protected-paths.js";
import type { LoadedPolicy } from "../policy/policy.js";

interface Ids {
  uid: number;
  gid: number;
}

interface Commands {
  policy: LoadedPolicy;
  /** The user that they run as in the container. */
  user: Ids;
  /** The user who runs brig. */
  hostUser: Ids;
  engine: Pick<EngineInfo, "securityOptions">;
}

const READ = 0o5;
const READ_AND_WRITE = 0o7;

/**
 * Says of each directory of the host that commands cannot use although the policy lets them: it belongs to somebody
 * else. They have no capabilities, so even root cannot, and none of the further groups of who runs brig.
 */
export function ownerNotices(roots: readonly Root[], commands: Commands): BrigError[] {
  const { policy, engine, user, hostUser } = commands;
  if (policy.policy.capabilities !== "none") return [];
  // In a rootless engine's user namespace its user is root.
  const actual = isRootless(engine) ? hostUser : user;
  return roots.flatMap(({ access, directory: { path } }) => {
    const stat = lstatSync(path, { throwIfNoEntry: false });
    if (stat === undefined || permits(stat, actual, access === "rw" ? READ_AND_WRITE : READ)) return [];
    const what = permits(stat, actual, READ) ? "write to" : "use";
    return new BrigError(
      `commands cannot ${what} ${JSON.stringify(path)}: it belongs to ${stat.uid}:${stat.gid}, and they run as ${actual.uid}:${actual.gid}`,
      { code: "workspace.invalid", hint: remedy(stat, commands) },
    );
  });
}

function permits({ mode, uid, gid }: Stats, user: Ids, wanted: number): boolean {
  const bits = uid === user.uid ? mode >> 6 : gid === user.gid ? mode >> 3 : mode;
  return (bits & wanted) === wanted;
}

function remedy({ uid, gid }: Stats, { user, hostUser, engine }: Commands): string {
  if (isRootless(engine) || (hostUser.uid !== 0 && user.uid === hostUser.uid))
    return "use a directory of your own, or have its owner give it to you: chown, or chmod";
  const owner = `${uid}:${gid}`;
  return `run them as its owner: --user ${owner}, or user = "${owner}" in a policy file`;
}
