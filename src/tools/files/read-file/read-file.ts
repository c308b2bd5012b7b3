import { z } from "zod";
import {
  type ArgumentsOf,
  absolutePath,
  defineTool,
  type SandboxAccess,
  type WorkingDirectory,
  workdirOf,
} from "../../define-tool.js";
import { failureOutput, requireInput, type Tool, type ToolCallOptions, type ToolOutput } from "../../tool.js";
import { type BlockRequest, readLines } from "./read-lines.js";

const DEFAULT_LIMIT = 2000;

const count = z.int().nonnegative();
const mode = z
  .string()
  .pipe(z.enum(["slice", "indentation"]))
  .default("slice");

const offset = count.default(1).describe("The line number to start reading from. Must be 1 or greater.");
const limit = count.default(DEFAULT_LIMIT).describe("The maximum number of lines to return.");
const anchorLine = count
  .optional()
  .describe("Anchor line to center the indentation lookup on (defaults to offset).");
const maxLevels = count
  .default(0)
  .describe("How many parent indentation levels (smaller indents) to include.");
const includeSiblings = z
  .boolean()
  .default(false)
  .describe("When true, include additional blocks that share the anchor indentation.");
const includeHeader = z
  .boolean()
  .default(true)
  .describe("Include doc comments or attributes directly above the selected block.");
const maxLines = count
  .optional()
  .describe("Hard cap on the number of lines returned when using indentation mode.");

const parameters = z.object({
  file_path: z.string().describe("Absolute path to the file"),
  offset,
  limit,
  mode: mode.describe(
    'Optional mode selector: "slice" for simple ranges (default) or "indentation" to expand around an anchor line.',
  ),
  indentation: z
    .object({
      anchor_line: anchorLine,
      max_levels: maxLevels,
      include_siblings: includeSiblings,
      include_header: includeHeader,
      max_lines: maxLines,
    })
    .meta({ additionalProperties: false })
    .prefault({})
    .describe("Which lines belong to the block, in indentation mode."),
});

export function readFileTool(needs: SandboxAccess): Tool<ToolOutput, ArgumentsOf<typeof parameters>> {
  return defineTool({
    name: "read_file",
    description:
      "Reads a local file with 1-indexed line numbers, supporting slice and indentation-aware block modes.",
    parameters,
    supportsParallel: true,
    changesNoFiles: true,
    run({ file_path: path, indentation, ...args }, call) {
      const { anchor_line, max_levels, include_siblings, include_header, max_lines } = indentation;
      const block = {
        anchorLine: anchor_line ?? args.offset,
        maxLevels: max_levels,
        includesSiblings: include_siblings,
        includesHeader: include_header,
        maxLines: max_lines ?? args.limit,
      };
      return readFile(needs, call, { ...args, path, block }).catch(failureOutput);
    },
  });
}

const programParameters = z.object({
  filePath: z.string().describe("Path of the file; a relative one starts from workdir."),
  offset,
  limit,
  mode: mode.describe('"slice" (default) for a range of lines, "indentation" for the block around one.'),
  workdir: z.string().optional().describe("Directory that relative paths start from."),
  anchorLine,
  maxLevels,
  includeSiblings,
  includeHeader,
  maxLines,
});

/** Like `read_file`, but for programs: paths may be relative, and failures are thrown as BrigErrors. */
export function readFileForPrograms(
  needs: SandboxAccess & WorkingDirectory,
): Tool<ToolOutput, ArgumentsOf<typeof programParameters>> {
  return defineTool({
    name: "readFile",
    description: "Reads lines of a file, with their numbers: a range, or the block around a line.",
    parameters: programParameters,
    supportsParallel: true,
    changesNoFiles: true,
    run: (args, call) =>
      readFile(needs, call, {
        ...args,
        path: absolutePath(workdirOf(needs, args.workdir), args.filePath),
        block: {
          anchorLine: args.anchorLine ?? args.offset,
          maxLevels: args.maxLevels,
          includesSiblings: args.includeSiblings,
          includesHeader: args.includeHeader,
          maxLines: args.maxLines ?? args.limit,
        },
      }),
  });
}

interface ReadRequest {
  path: string;
  mode: z.output<typeof mode>;
  offset: number;
  limit: number;
  block: BlockRequest;
}

async function readFile(
  needs: SandboxAccess,
  { signal }: ToolCallOptions,
  { path, mode, offset, limit, ...request }: ReadRequest,
): Promise<ToolOutput> {
  const block = mode === "indentation" ? request.block : null;
  requireInput(offset > 0, "offset must be a 1-indexed line number");
  requireInput(limit > 0, "limit must be greater than zero");
  requireInput(path.startsWith("/"), "file_path must be an absolute path");
  requireInput(block?.anchorLine !== 0, "anchor_line must be a 1-indexed line number");
  requireInput(block?.maxLines !== 0, "max_lines must be greater than zero");
  const { files } = await needs.sandbox();
  return { content: await readLines({ files, path, signal }, { offset, limit, block }), success: true };
}
