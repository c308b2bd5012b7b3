import { z } from "zod";
import { BrigError } from "../../errors.js";
import { type ArgumentsOf, defineTool } from "../define-tool.js";
import { describeOsError, fileFailure, osErrors } from "../os-error.js";
import type { Tool, ToolCallOptions, ToolOutput } from "../tool.js";
import type { SandboxAccess, WorkingDirectory } from "../tool-needs.js";
import { ByteLines } from "./byte-lines.js";
import { absolutePath } from "./file-path.js";
import { requireInput } from "./require-input.js";
import { type RipgrepNeeds, runRipgrep } from "./ripgrep.js";

/** What `fileSearch` tells a program; `content` has the paths, one per line. */
export interface FileSearchResult extends ToolOutput {
  /** Best first. */
  matches: FileMatch[];
  /** Before the limit. */
  totalMatchCount: number;
}

/** A file that the pattern fits. */
export interface FileMatch {
  /** From 0 to 1, which is the pattern itself. */
  score: number;
  /** From the searched directory. */
  path: string;
  /** Which characters (UTF-16 units) of the path matched. */
  indices: number[];
}

const DEFAULT_LIMIT = 64;
/** So many paths are held in memory at a time. */
const MAX_FILES = 1_000_000;

const parameters = z.object({
  pattern: z.string().describe("Characters that the path has in this order."),
  limit: z.int().nonnegative().default(DEFAULT_LIMIT).describe("How many matches to return. Default: 64."),
  searchDirectory: z.string().optional().describe("Directory to search. Default: the session's."),
  exclude: z.array(z.string()).default([]).describe("Globs of paths to leave out."),
});

interface FileSearchNeeds extends RipgrepNeeds, WorkingDirectory {}

/** For programs: finds files by their paths, fuzzily, hidden ones too, but neither what git ignores nor `.git`. */
export function fileSearchFace(
  needs: FileSearchNeeds,
): Tool<FileSearchResult, ArgumentsOf<typeof parameters>> {
  return defineTool({
    name: "fileSearch",
    description: "Finds files whose paths match a pattern fuzzily.",
    parameters,
    supportsParallel: true,
    run: (args, call) => fileSearch(needs, call, args),
  });
}

async function fileSearch(
  needs: FileSearchNeeds,
  { signal }: ToolCallOptions,
  { pattern, limit, searchDirectory, exclude }: z.output<typeof parameters>,
): Promise<FileSearchResult> {
  requireInput(pattern.trim() !== "", "pattern must not be empty");
  requireInput(limit > 0, "limit must be greater than zero");
  const directory = absolutePath(needs.cwd, searchDirectory ?? "");
  await requireDirectory(needs, directory, signal);
  const paths = await listFiles(needs, { directory, exclude, signal });
  return await rank(paths, pattern, limit);
}

async function rank(paths: string[], pattern: string, limit: number): Promise<FileSearchResult> {
  const { cleanup, go } = await import("fuzzysort");
  try {
    const found = go(pattern, paths, { limit, threshold: 0 });
    const matches = found.map(({ score, target, indexes }) => ({
      score,
      path: target,
      indices: [...indexes],
    }));
    return {
      matches,
      totalMatchCount: found.total,
      content: matches.map(({ path }) => path).join("\n"),
      success: found.total > 0,
    };
  } finally {
    // It would remember every path it has seen.
    cleanup();
  }
}

async function listFiles(
  needs: RipgrepNeeds,
  { directory, exclude, signal }: { directory: string; exclude: string[]; signal: AbortSignal | undefined },
): Promise<string[]> {
  const paths: string[] = [];
  // Ended by NUL, since a name may have a newline in it.
  const names = new ByteLines("\0", (path) => {
    if (paths.push(path) > MAX_FILES) throw tooMany(directory);
  });
  await runRipgrep(needs, {
    args: [
      ...["--files", "--null", "--hidden", "--no-messages", "--glob", "!.git"],
      ...exclude.flatMap((glob) => ["--glob", `!${glob}`]),
    ],
    cwd: directory,
    signal,
    onOutput: (chunk) => names.push(chunk),
  });
  names.end();
  // Equal scores come in this order.
  return paths.sort();
}

async function requireDirectory(
  needs: SandboxAccess,
  path: string,
  signal: AbortSignal | undefined,
): Promise<void> {
  const what = `unable to access \`${path}\``;
  const { files } = await needs.sandbox();
  const { type } = await files.stat(path, { signal }).catch((error: unknown) => {
    signal?.throwIfAborted();
    throw fileFailure(what, path, error);
  });
  if (type !== "directory")
    throw new BrigError(`${what}: ${describeOsError(osErrors.ENOTDIR)}`, { code: "file.not-directory" });
}

function tooMany(directory: string): BrigError {
  return new BrigError(`${directory} has more than ${MAX_FILES} files`, {
    code: "tool.failed",
    hint: "search a directory below it, or exclude some",
  });
}
