import { posix } from "node:path";
import { isBrigError } from "../../../../errors.js";
import { readFile } from "../../../files/file-reads.js";
import { statFile } from "../../../files/files.js";
import type { CommandContext } from "../../../process/start-command.js";

/** An image may name any number of directories. */
const MAX_DIRECTORIES = 32;

/** Null for a file that is not there, or cannot be read, or is too large. The image's file may have any content. */
export async function readIfThere(
  context: CommandContext,
  path: string,
  { maxBytes }: { maxBytes: number },
): Promise<Buffer | null> {
  return await unlessFailed(readFile(context, path, { maxBytes }));
}

/** The path of the first program of this name, links not followed; null if the image has none. */
export async function findProgram(
  context: CommandContext,
  name: string,
  directories: readonly string[],
): Promise<string | null> {
  const paths = directories.slice(0, MAX_DIRECTORIES).map((directory) => posix.join(directory, name));
  // All at once, so that looking takes one round trip.
  const found = await Promise.all(paths.map(async (path) => await unlessFailed(statFile(context, path, {}))));
  return paths.find((_, at) => found[at]?.type === "file") ?? null;
}

export function searchPath({ PATH = "" }: Readonly<Record<string, string>>): string[] {
  return PATH.split(":").filter((directory) => directory.startsWith("/"));
}

export async function unlessFailed<Result>(operation: Promise<Result>): Promise<Result | null> {
  try {
    return await operation;
  } catch (error) {
    if (!isBrigError(error) || error.code === "sandbox.gone") throw error;
    return null;
  }
}
