import { closeSync, constants, openSync } from "node:fs";
import { connect } from "node:net";
import { basename, dirname } from "node:path";
import { errnoOf } from "../../lib/errno.js";

/** The most bytes that the kernel's address of a socket has room for, without the zero byte at the end. */
const MAX_ADDRESS_BYTES = 107;

/** The errors of connecting to a socket that no program has any more: its file was left behind. */
const NOBODY = ["ECONNREFUSED", "ENOENT", "ENOTDIR"];

/**
 * Whether a program has this socket, whatever it is called and on whatever network that program is. The kernel
 * goes by the file itself here. A server gets a connection that is closed at once; a socket of datagrams notices nothing.
 */
export async function isListenedOn(path: string): Promise<boolean> {
  if (Buffer.byteLength(path) <= MAX_ADDRESS_BYTES) return await answers(path);
  let directory: number;
  try {
    directory = openSync(dirname(path), constants.O_RDONLY | constants.O_DIRECTORY);
  } catch (error) {
    return !NOBODY.includes(errnoOf(error) ?? "");
  }
  try {
    const short = `/proc/self/fd/${directory}/${basename(path)}`;
    return Buffer.byteLength(short) > MAX_ADDRESS_BYTES || (await answers(short));
  } finally {
    closeSync(directory);
  }
}

async function answers(path: string): Promise<boolean> {
  return await new Promise((resolve) => {
    const socket = connect({ path });
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.on("error", (error) => resolve(!NOBODY.includes(errnoOf(error) ?? "")));
  });
}
