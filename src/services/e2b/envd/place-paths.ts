import type { IncomingMessage } from "node:http";
import { posix } from "node:path";
import { planOf, type Sandbox } from "../../../sandbox/index.js";
import { ConnectFailure } from "./connect-protocol.js";

/** A path of a client: absolute, below the home with or without `~/`, or the home itself. */
export function resolvePath(path: string, home: string): string {
  if (path.includes("\0"))
    throw new ConnectFailure("a path must not contain NUL", { code: "invalid_argument" });
  const below = path === "~" || path.startsWith("~/") ? path.slice(2) : path;
  return posix.resolve(home, below);
}

/** The user that a call names in its header; empty for none. */
export function namedUser({ headers }: IncomingMessage): string {
  const [, encoded = ""] = /^Basic ([A-Za-z0-9+/=]+)$/i.exec(headers.authorization ?? "") ?? [];
  return Buffer.from(encoded, "base64").toString().split(":", 1).join();
}

/** Everything in a sandbox belongs to one user. Error: a failure for another one. */
export function refuseOtherUser(named: string, { user, sandbox }: { user: string; sandbox: Sandbox }): void {
  const { uid } = planOf(sandbox).user;
  if (named === "" || named === user || named === `${uid}` || (named === "root" && uid === 0)) return;
  throw new ConnectFailure(
    `everything in this sandbox runs as the user ${JSON.stringify(user)} (uid ${uid}), not as the user ${JSON.stringify(named)}; leave the user out`,
    { code: "invalid_argument" },
  );
}
