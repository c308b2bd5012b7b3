import { type ExecCommandNeeds, execCommandTool } from "./command/exec-command.js";
import { execTool } from "./command/exec-tool.js";
import { type ShellCommandNeeds, shellCommandTool } from "./command/shell-command.js";
import { localShellTool, shellTool } from "./command/shell-tool.js";
import { type WriteStdinNeeds, writeStdinTool } from "./command/write-stdin.js";
import { fileSearchTool } from "./files/file-search.js";
import { grepFilesForPrograms, grepFilesTool } from "./files/grep-files.js";
import { listDirForPrograms, listDirTool } from "./files/list-dir/list-dir.js";
import { readFileForPrograms, readFileTool } from "./files/read-file/read-file.js";
import { applyPatchForPrograms } from "./patch/apply-patch-for-programs.js";
import { sessionPatchTool } from "./patch/patch-interception.js";
import { type ViewImageNeeds, viewImageTool } from "./picture/view-image.js";
import { type JsReplNeeds, jsReplResetTool, jsReplTool } from "./repl/js-repl.js";
import { requestUserInputTool, type UserInputNeeds } from "./session/request-user-input.js";
import { updatePlanTool } from "./session/update-plan.js";
import { type WebSearchNeeds, webSearchTool } from "./session/web-search.js";
import type { Tool } from "./tool.js";

/** Everything that the tools of one registry need. Each tool's factory declares which part of it it uses. */
export interface ToolDependencies
  extends ShellCommandNeeds,
    ExecCommandNeeds,
    WriteStdinNeeds,
    ViewImageNeeds,
    UserInputNeeds,
    JsReplNeeds,
    WebSearchNeeds {}

/** All tools by name, in the order in which a model sees them. */
const factories = {
  shell: shellTool,
  shell_command: shellCommandTool,
  local_shell: localShellTool,
  exec_command: execCommandTool,
  write_stdin: writeStdinTool,
  read_file: readFileTool,
  list_dir: listDirTool,
  grep_files: grepFilesTool,
  view_image: viewImageTool,
  update_plan: updatePlanTool,
  apply_patch: sessionPatchTool,
  request_user_input: requestUserInputTool,
  js_repl: jsReplTool,
  js_repl_reset: jsReplResetTool,
  web_search: webSearchTool,
  // For programs only.
  applyPatch: (needs: ToolDependencies) => applyPatchForPrograms(needs.patcher, needs),
  readFile: readFileForPrograms,
  listDir: listDirForPrograms,
  grepFiles: grepFilesForPrograms,
  fileSearch: fileSearchTool,
  exec: execTool,
} satisfies Record<string, (needs: ToolDependencies) => Tool>;

const aliases = { "container.exec": "shell" } as const satisfies Record<string, keyof typeof factories>;

type Factories = typeof factories;
type Aliases = typeof aliases;

/** The names of the tools in a registry, aliases included. */
export type ToolName = keyof Factories | keyof Aliases;

/** A tool with its own arguments and results, or `Tool` if the name is not known at compile time. */
export type ToolOf<Name extends string> = Name extends keyof Factories
  ? ReturnType<Factories[Name]>
  : Name extends keyof Aliases
    ? ReturnType<Factories[Aliases[Name]]>
    : Tool;

/** Accepts a string literal only if it names a tool; accepts any value of type `string`. */
export type NameOfTool<Name extends string> = Name extends ToolName
  ? Name
  : string extends Name
    ? Name
    : never;

export function createTools(needs: ToolDependencies): {
  tools: readonly Tool[];
  /** Knows aliases, too. */
  find: (name: string) => Tool | undefined;
} {
  const tools = new Map<string, Tool>(
    Object.entries<(needs: ToolDependencies) => Tool>(factories).map(([name, create]) => [
      name,
      create(needs),
    ]),
  );
  const realNames = new Map<string, string>(Object.entries(aliases));
  return { tools: [...tools.values()], find: (name) => tools.get(realNames.get(name) ?? name) };
}
