import {
  type BigIntStats,
  closeSync,
  constants,
  type Dirent,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
  statfsSync,
} from "node:fs";
import { dirname } from "node:path";
import { errnoOf } from "../../lib/errno.js";

/**
 * A path byte for byte, as a Latin-1 string, since a file name need not be UTF-8. The functions here block,
 * because that is ten times faster; long loops must yield to the event loop.
 */
export type BytePath = string;

export function toBytePath(path: string): BytePath {
  return Buffer.from(path, "utf8").toString("latin1");
}

/** Null for a path that is not UTF-8, which the engine's API could not carry. */
export function fromBytePath(path: BytePath): string | null {
  const text = decodeBytePath(path);
  return toBytePath(text) === path ? text : null;
}

/** Replaces what is not UTF-8. */
export function decodeBytePath(path: BytePath): string {
  return bytesOf(path).toString("utf8");
}

export function quoteBytePath(path: BytePath): string {
  return JSON.stringify(decodeBytePath(path));
}

export function lstatOrNull(path: BytePath): BigIntStats | null {
  try {
    return lstatSync(bytesOf(path), { bigint: true, throwIfNoEntry: false }) ?? null;
  } catch (error) {
    if (errnoOf(error) === "ENOTDIR") return null;
    throw error;
  }
}

/** Whether a file has several names. Takes half the time of `lstatOrNull`. */
export function isHardLinked(path: BytePath): boolean {
  return (lstatSync(bytesOf(path), { throwIfNoEntry: false })?.nlink ?? 1) > 1;
}

/** Null for a path that is not a symbolic link or cannot be read. */
function linkTarget(path: BytePath): BytePath | null {
  try {
    if (!lstatSync(bytesOf(path), { throwIfNoEntry: false })?.isSymbolicLink()) return null;
    return readlinkSync(bytesOf(path), { encoding: "latin1" });
  } catch {
    return null;
  }
}

export function listNames(directory: BytePath): Dirent[] {
  return readdirSync(bytesOf(directory), { withFileTypes: true, encoding: "latin1" });
}

/** Reads a regular file without following links or blocking on a FIFO. Null if it does not exist. */
export function readSmallFile(path: BytePath, maxBytes: number): Buffer | null | "irregular" | "too-long" {
  let file: number;
  try {
    file = openSync(bytesOf(path), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === "ENOENT" || errno === "ENOTDIR") return null;
    if (errno === "ELOOP" || errno === "ENXIO") return "irregular";
    throw error;
  }
  try {
    const stat = fstatSync(file);
    if (!stat.isFile()) return "irregular";
    if (stat.size > maxBytes) return "too-long";
    const bytes = Buffer.alloc(stat.size);
    let used = 0;
    while (used < bytes.length) {
      const count = readSync(file, bytes, used, bytes.length - used, used);
      if (count === 0) break;
      used += count;
    }
    return bytes.subarray(0, used);
  } finally {
    closeSync(file);
  }
}

/** Linux follows at most 40 links in one path. */
const MAX_LINKS = 40;

export interface Step {
  /** No directory on the way to it is a symbolic link. */
  path: BytePath;
  isLink: boolean;
}

/**
 * Every name that the kernel looks up to resolve a path, through links. The last is its target, existing or
 * not.
 */
export function stepsTo(path: BytePath): Step[] {
  const steps: Step[] = [];
  let at = "/";
  let links = 0;
  const names = namesOf(path).reverse();
  for (let name = names.pop(); name !== undefined; name = names.pop()) {
    const next = name === ".." ? dirname(at) : at === "/" ? `/${name}` : `${at}/${name}`;
    const target = links < MAX_LINKS && name !== ".." ? linkTarget(next) : null;
    steps.push({ path: next, isLink: target !== null });
    if (target === null) at = next;
    else if (target.startsWith("/")) at = "/";
    if (target !== null) {
      links += 1;
      names.push(...namesOf(target).reverse());
    }
  }
  return steps;
}

function namesOf(path: BytePath): string[] {
  return path.split("/").filter((name) => name !== "" && name !== ".");
}

/** The statfs(2) types of ext4, XFS and tmpfs. */
const COUNTING_FILE_SYSTEMS = [0xef53, 0x58465342, 0x01021994];

/** Whether a directory's link count on this file system is 2 plus the number of its subdirectories. */
export function countsSubdirectories(directory: BytePath): boolean {
  try {
    return COUNTING_FILE_SYSTEMS.includes(statfsSync(bytesOf(directory)).type);
  } catch {
    return false;
  }
}

function bytesOf(path: BytePath): Buffer {
  return Buffer.from(path, "latin1");
}
