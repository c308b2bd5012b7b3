import { z } from "zod";
import { BrigError } from "../../errors.js";
import { type ArgumentsOf, absolutePath, defineTool, type WorkingDirectory } from "../define-tool.js";
import { describeOsError, osErrors } from "../os-error.js";
import { requireInput, type Tool, type ToolCallOptions, type ToolOutput } from "../tool.js";
import { ByteLines } from "./byte-lines.js";
import { type RipgrepNeeds, runRipgrep, statSearched } from "./ripgrep.js";

/** The result of `fileSearch`; `content` has the paths, one per line. */
export interface FileSearchResult extends ToolOutput {
  /** The best match comes first. */
  matches: FileMatch[];
  /** How many paths match, including those that the limit leaves out of `matches`. */
  totalMatchCount: number;
}

/** A file whose path matches the pattern. */
export interface FileMatch {
  /** From 0 to 1; 1 if the path is the pattern itself. */
  score: number;
  /** Relative to the searched directory. */
  path: string;
  /** The indices of the UTF-16 code units of the path that match. */
  indices: number[];
}

const DEFAULT_LIMIT = 64;
/** All paths are in memory at the same time. */
const MAX_FILES = 1_000_000;

const parameters = z.object({
  pattern: z.string().describe("Characters that the path has in this order."),
  limit: z.int().nonnegative().default(DEFAULT_LIMIT).describe("How many matches to return. Default: 64."),
  searchDirectory: z.string().optional().describe("Directory to search. Default: the session's."),
  exclude: z.array(z.string()).default([]).describe("Globs of paths to leave out."),
});

interface FileSearchNeeds extends RipgrepNeeds, WorkingDirectory {}

/** For programs: fuzzy search for file paths. Includes hidden files, but not `.git` and what git ignores. */
export function fileSearchTool(
  needs: FileSearchNeeds,
): Tool<FileSearchResult, ArgumentsOf<typeof parameters>> {
  return defineTool({
    name: "fileSearch",
    description: "Finds files whose paths match a pattern fuzzily.",
    parameters,
    supportsParallel: true,
    changesNoFiles: true,
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
  const { type } = await statSearched(needs, directory, signal);
  if (type !== "directory")
    throw new BrigError(`unable to access \`${directory}\`: ${describeOsError(osErrors.ENOTDIR)}`, {
      code: "file.not-directory",
    });
  const paths: string[] = [];
  await listFiles(needs, {
    directory,
    exclude,
    signal,
    onPath(path) {
      if (paths.push(path) > MAX_FILES) throw tooMany(directory);
    },
  });
  // Matches with equal scores keep this order.
  return await rank(paths.sort(), pattern, limit);
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
    // fuzzysort caches every path that it has seen.
    cleanup();
  }
}

interface FileListing {
  directory: string;
  /** Globs of paths to leave out. Default: none. */
  exclude?: readonly string[];
  signal: AbortSignal | undefined;
  /** Is given paths relative to the directory. */
  onPath(path: string): void;
}

/** Lists the files below a directory, hidden ones too, but not `.git` and what git ignores. Error: `tool.failed`. */
export async function listFiles(
  needs: RipgrepNeeds,
  { directory, exclude = [], signal, onPath }: FileListing,
): Promise<void> {
  // File names may contain newlines, but no NUL.
  const names = new ByteLines("\0", onPath);
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
}

function tooMany(directory: string): BrigError {
  return new BrigError(`${directory} has more than ${MAX_FILES} files`, {
    code: "tool.failed",
    hint: "search a directory below it, or exclude some of its files",
  });
}
