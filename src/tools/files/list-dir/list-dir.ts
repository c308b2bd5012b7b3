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
import { type ListRequest, listTree } from "./list-tree.js";

const count = z.int().nonnegative();
const page = {
  offset: count.default(1).describe("The entry number to start listing from. Must be 1 or greater."),
  limit: count.default(25).describe("The maximum number of entries to return."),
  depth: count.default(2).describe("The maximum directory depth to traverse. Must be 1 or greater."),
};

const parameters = z.object({
  dir_path: z.string().describe("Absolute path to the directory to list."),
  ...page,
});

export function listDirTool(needs: SandboxAccess): Tool<ToolOutput, ArgumentsOf<typeof parameters>> {
  return defineTool({
    name: "list_dir",
    description: "Lists entries in a local directory with 1-indexed entry numbers and simple type labels.",
    parameters,
    supportsParallel: true,
    changesNoFiles: true,
    run: (args, call) => listDir(needs, call, { ...args, path: args.dir_path }).catch(failureOutput),
  });
}

const programParameters = z.object({
  path: z.string().describe("Path of the directory; a relative one starts from workdir."),
  ...page,
  workdir: z.string().optional().describe("Directory that relative paths start from."),
});

/** Like `list_dir`, but for programs: paths may be relative, and failures are thrown as BrigErrors. */
export function listDirForPrograms(
  needs: SandboxAccess & WorkingDirectory,
): Tool<ToolOutput, ArgumentsOf<typeof programParameters>> {
  return defineTool({
    name: "listDir",
    description: "Lists a directory and those below it as a tree.",
    parameters: programParameters,
    supportsParallel: true,
    changesNoFiles: true,
    run: (args, call) =>
      listDir(needs, call, { ...args, path: absolutePath(workdirOf(needs, args.workdir), args.path) }),
  });
}

async function listDir(
  needs: SandboxAccess,
  { signal }: ToolCallOptions,
  request: ListRequest,
): Promise<ToolOutput> {
  requireInput(request.offset > 0, "offset must be a 1-indexed entry number");
  requireInput(request.limit > 0, "limit must be greater than zero");
  requireInput(request.depth > 0, "depth must be greater than zero");
  requireInput(request.path.startsWith("/"), "dir_path must be an absolute path");
  const { files } = await needs.sandbox();
  return { content: await listTree({ files, signal }, request), success: true };
}
