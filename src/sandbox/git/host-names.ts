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
 * Paths as the kernel has them, byte for byte, in a string of Latin-1: a name need not be UTF-8, and one that is read in a lossy
 * way is looked for in vain. Looks that block are ten times cheaper than those that do not; who looks often pauses in between.
 */
export type BytePath = string;

export function toBytePath(path: string): BytePath {
  return Buffer.from(path, "utf8").toString("latin1");
}

/** Null for a path that the engine's API could not carry. */
export function fromBytePath(path: BytePath): string | null {
  const text = Buffer.from(path, "latin1").toString("utf8");
  return toBytePath(text) === path ? text : null;
}

/** For messages. */
export function quoteBytePath(path: BytePath): string {
  return JSON.stringify(Buffer.from(path, "latin1").toString("utf8"));
}

/** Null where there is nothing. */
export function lookAt(path: BytePath): BigIntStats | null {
  try {
    return lstatSync(bytesOf(path), { bigint: true, throwIfNoEntry: false }) ?? null;
  } catch (error) {
    if (errnoOf(error) === "ENOTDIR") return null;
    throw error;
  }
}

/** In half the time of a full look. */
export function hasOtherNames(path: BytePath): boolean {
  return (lstatSync(bytesOf(path), { throwIfNoEntry: false })?.nlink ?? 1) > 1;
}

/** The text of a link; null for what is none, or cannot be looked at. */
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

/** The bytes of a regular file that is no link and not longer; null where there is nothing. Never waits. */
export function readSmall(path: BytePath, maxBytes: number): Buffer | null | "irregular" | "too-long" {
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

/** More links than any kernel follows. */
const MAX_LINKS = 40;

export interface Step {
  /** Without a link on the way to it. */
  path: BytePath;
  isLink: boolean;
}

/** Every name that is looked up on the way to a path, links followed. The last one is where it leads, there or not. */
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

const COUNTING_FILE_SYSTEMS = [0xef53, 0x58465342, 0x01021994];

/** Whether a directory here has a link for each directory in it, as ext4, XFS and tmpfs have, so that 2 means none. */
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
