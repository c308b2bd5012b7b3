import { readdirSync, readFileSync, statSync } from "node:fs";
import { type BytePath, toBytePath } from "../git/byte-paths.js";

/** A socket with a name in the file system that takes connections or datagrams, or may begin to. */
export interface BoundSocket {
  /** The kernel's number for it. */
  id: string;
  /** The name as its program wrote it: perhaps relative to where the program was, and perhaps not its name any more. */
  name: BytePath;
}

const DATAGRAM = "0002";
const ACCEPTS_CONNECTIONS = 0x10000;
/** Bound, and not connected: it may still begin to listen. */
const UNCONNECTED = "01";

/** The sockets of this machine's network; null where there is no such table, as on macOS. */
export function readBoundSockets(procDirectory = "/proc"): BoundSocket[] | null {
  try {
    return parseBoundSockets(readFileSync(`${procDirectory}/net/unix`, "latin1"));
  } catch {
    return null;
  }
}

/** The sockets of the other networks of this machine, as containers have them. The table of a network may be read by anybody. */
export function readSocketsOfOtherNetworks(procDirectory = "/proc"): BoundSocket[] {
  const own = networkOf(`${procDirectory}/net/unix`);
  const tables = new Map<number | null, string>();
  for (const process of readdirSync(procDirectory)) {
    if (!/^[0-9]+$/.test(process)) continue;
    const file = `${procDirectory}/${process}/net/unix`;
    const network = networkOf(file);
    if (network === null || network === own || tables.has(network)) continue;
    try {
      tables.set(network, readFileSync(file, "latin1"));
    } catch {
      // The process has ended. Another one of its network has the same table.
    }
  }
  return [...tables.values()].flatMap(parseBoundSockets);
}

/** The kernel has one file for the table of each network, which all processes in it show. Null for a process that has ended. */
function networkOf(file: string): number | null {
  try {
    return statSync(file).ino;
  } catch {
    return null;
  }
}

/** Leaves out abstract names, and connections, which have the name of the socket that accepted them. */
export function parseBoundSockets(table: string): BoundSocket[] {
  const line = /^[0-9a-f]+: [0-9A-F]+ [0-9A-F]+ ([0-9A-F]+) ([0-9A-F]+) ([0-9A-F]+) +([0-9]+) ([^@\n].*)$/gm;
  return [...table.matchAll(line)].flatMap(([, flags = "", type, state, id = "", name = ""]) => {
    const isListening = (Number.parseInt(flags, 16) & ACCEPTS_CONNECTIONS) !== 0;
    return isListening || type === DATAGRAM || state === UNCONNECTED ? [{ id, name }] : [];
  });
}

/** Whether the table names this file: as it is called, or relative to some directory. */
export function isNamed(path: string, sockets: readonly BoundSocket[]): boolean {
  const wanted = toBytePath(path);
  return sockets.some(
    ({ name }) => name === wanted || (!name.startsWith("/") && wanted.endsWith(`/${name}`)),
  );
}
