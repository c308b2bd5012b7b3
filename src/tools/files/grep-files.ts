import { z } from "zod";
import { trim } from "../../lib/white-space.js";
import { type ArgumentsOf, absolutePath, defineTool, type WorkingDirectory } from "../define-tool.js";
import {
  failure,
  failureOutput,
  requireInput,
  type Tool,
  type ToolCallOptions,
  type ToolOutput,
} from "../tool.js";
import { ByteLines } from "./byte-lines.js";
import { type RipgrepNeeds, runRipgrep, statSearched } from "./ripgrep.js";

const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 2000;

const parameters = z.object({
  pattern: z.string().describe("Regular expression pattern to search for."),
  include: z
    .string()
    .optional()
    .describe('Optional glob that limits which files are searched (e.g. "*.rs" or "*.{ts,tsx}").'),
  path: z
    .string()
    .optional()
    .describe("Directory or file path to search. Defaults to the session's working directory."),
  limit: z
    .int()
    .nonnegative()
    .default(DEFAULT_LIMIT)
    .describe("Maximum number of file paths to return (defaults to 100)."),
});

interface GrepNeeds extends RipgrepNeeds, WorkingDirectory {}

export function grepFilesTool(needs: GrepNeeds): Tool<ToolOutput, ArgumentsOf<typeof parameters>> {
  return defineTool({
    name: "grep_files",
    description: "Finds files whose contents match the pattern and lists them by modification time.",
    parameters,
    supportsParallel: true,
    changesNoFiles: true,
    run: (args, call) => grepFiles(needs, call, args).catch(failureOutput),
  });
}

/** Like `grep_files`, but for programs: failures are thrown as BrigErrors. */
export function grepFilesForPrograms(needs: GrepNeeds): Tool<ToolOutput, ArgumentsOf<typeof parameters>> {
  return defineTool({
    name: "grepFiles",
    description: "Lists the files whose contents match a regular expression, last modified first.",
    parameters,
    supportsParallel: true,
    changesNoFiles: true,
    run: (args, call) => grepFiles(needs, call, args),
  });
}

async function grepFiles(
  needs: GrepNeeds,
  { signal }: ToolCallOptions,
  { pattern, include, path, limit }: z.output<typeof parameters>,
): Promise<ToolOutput> {
  const expression = trim(pattern);
  requireInput(expression !== "", "pattern must not be empty");
  requireInput(limit > 0, "limit must be greater than zero");
  const glob = trim(include ?? "");
  const target = absolutePath(needs.cwd, path ?? "");
  await statSearched(needs, target, signal);

  const found: string[] = [];
  const lines = new ByteLines("\n", (line) => {
    if (found.length < Math.min(limit, MAX_LIMIT)) found.push(line);
  });
  await runRipgrep(needs, {
    args: [
      "--files-with-matches",
      "--sortr=modified",
      ...["--regexp", expression],
      "--no-messages",
      ...(glob === "" ? [] : ["--glob", glob]),
      ...["--", target],
    ],
    cwd: needs.cwd,
    signal,
    onOutput: (chunk) => lines.push(chunk),
  });
  lines.end();
  return found.length === 0 ? failure("No matches found.") : { content: found.join("\n"), success: true };
}
