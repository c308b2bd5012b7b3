import { readdir, realpath, stat } from "node:fs/promises";
import { join } from "node:path";
import { readTextFile } from "../../../lib/bounded-file.js";
import { formatBytes } from "../../../lib/bytes.js";
import { withoutCredentials } from "./without-credentials.js";

const MAX_FILE_BYTES = 1024 * 1024;
const MAX_TOTAL_BYTES = 16 * 1024 * 1024;
const MAX_FILES = 1000;
const MAX_DEPTH = 8;
const MAX_ENTRIES = 10_000;

/** A file of a configuration, for the home directory in the sandbox. */
export interface ConfigurationFile {
  /** The path relative to the home directory. */
  path: string;
  /** The path on this machine, without symbolic links. */
  hostPath: string;
  text: string;
  /** Whether the text is the whole text of the host's file, with nothing left out. */
  isUnchanged: boolean;
}

export interface Configuration {
  files: readonly ConfigurationFile[];
  /** Notes about everything that was left out, as sentences without a full stop. */
  leftOut: readonly string[];
}

interface Wanted {
  /** Files and directories, relative to the home directory. Those that do not exist are ignored. */
  paths: readonly string[];
  /** Returns the location of such a path on this machine. */
  locate: (path: string) => string;
  /** Values that must not be in any file. */
  secrets: readonly string[];
}

/**
 * Reads the files of a configuration, without anything that looks like a credential. Follows symbolic links, which people use
 * for their configuration; a file that is not text, or too large, is left out.
 */
export async function collectConfiguration({ paths, locate, secrets }: Wanted): Promise<Configuration> {
  const files: ConfigurationFile[] = [];
  const leftOut: string[] = [];
  let bytes = 0;
  let entries = 0;
  const add = async (path: string, hostPath: string) => {
    if (files.length >= MAX_FILES)
      return void leftOut.push(`${path}: there are more than ${MAX_FILES} files`);
    const read = await readTextFile(hostPath, MAX_FILE_BYTES);
    if (read.kind === "missing") return;
    if (read.kind === "unreadable") return void leftOut.push(`${path} ${read.reason}`);
    bytes += Buffer.byteLength(read.text);
    if (bytes > MAX_TOTAL_BYTES)
      return void leftOut.push(`${path}: there are more than ${formatBytes(MAX_TOTAL_BYTES)}`);
    const cleaned = withoutCredentials(read.text, { fileName: path, secrets });
    if (cleaned.kind === "left-out") return void leftOut.push(`${path} ${cleaned.reason}`);
    for (const setting of cleaned.removed) leftOut.push(`${path}: ${setting} looks like a credential`);
    const isUnchanged = cleaned.removed.length === 0;
    files.push({ path, hostPath: await realpath(hostPath), text: cleaned.text, isUnchanged });
  };
  const walk = async (path: string, hostPath: string, depth: number): Promise<void> => {
    const kind = await kindOf(hostPath);
    if (kind === "file") return await add(path, hostPath);
    if (kind !== "directory") return;
    // Links may form a loop.
    if (depth >= MAX_DEPTH || entries > MAX_ENTRIES)
      return void leftOut.push(`${path} is too deep or too large`);
    const names = await readdir(hostPath).catch(() => []);
    entries += names.length;
    for (const name of names.toSorted()) {
      // A version-control directory is no configuration, and may hold a remote's credentials.
      if (name !== ".git" && name !== "node_modules")
        await walk(`${path}/${name}`, join(hostPath, name), depth + 1);
    }
  };
  for (const path of paths) await walk(path, locate(path), 0);
  return { files, leftOut: leftOut.slice(0, MAX_FILES) };
}

async function kindOf(path: string): Promise<"file" | "directory" | "other"> {
  const found = await stat(path).catch(() => null);
  if (found?.isFile() === true) return "file";
  return found?.isDirectory() === true ? "directory" : "other";
}
