import { statSync } from "node:fs";
import { factsOf, isOwnDirectory, ownUid } from "../../../lib/files/own-directory.js";

/** The longest path of a Unix socket, without the zero byte at the end. */
const MAX_PATH_BYTES = 107;

/** Where the owner of a `$BRIG_HOME` listens. */
export interface ServiceSocket {
  path: string;
  /** The directory of the socket. Whoever may write to it could put another socket there. */
  directory: string;
}

/**
 * Usually `$BRIG_HOME/service.sock`. If that is too long for a socket, it is in a directory of the user's, in the machine's own place for
 * such things. No variable decides that, so that programs with other variables find it too.
 */
export function serviceSocket(brigHome: string, uid: number = ownUid()): ServiceSocket {
  const usual = `${brigHome}/service.sock`;
  if (Buffer.byteLength(usual) <= MAX_PATH_BYTES) return { path: usual, directory: brigHome };
  const runtime = `/run/user/${uid}`;
  const above = isOwnDirectory(runtime, uid) ? runtime : "/tmp";
  const directory = `${above}/brig-${uid}`;
  return { path: `${directory}/${hashOf(brigHome)}.sock`, directory };
}

/**
 * Why nobody may connect to the socket: somebody else could be listening there. Null if all is well, and also if there is nothing yet.
 * Synchronous, because loading node:fs/promises takes longer than the calls.
 */
export function socketProblem({ path, directory }: ServiceSocket, uid: number = ownUid()): string | null {
  const place = factsOf(directory, statSync);
  if (place === null) return null;
  if (!place.isDirectory()) return `${directory} is not a directory`;
  if (place.uid !== uid) return `${directory} belongs to another user`;
  if ((place.mode & 0o022) !== 0) return `other users may write to ${directory}`;
  const socket = factsOf(path);
  if (socket === null) return null;
  if (!socket.isSocket()) return `${path} is not a socket`;
  if (socket.uid !== uid) return `${path} belongs to another user`;
  return (socket.mode & 0o077) === 0 ? null : `other users may connect to ${path}`;
}

/** FNV-1a with 64 bits: it is for a short name, and loading node:crypto takes longer than all of this file. */
function hashOf(text: string): string {
  let hash = 0xcbf29ce484222325n;
  for (const byte of Buffer.from(text)) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  return hash.toString(16).padStart(16, "0");
}
