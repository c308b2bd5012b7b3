import { type ExecCommandNeeds, execCommandTool } from "./command/exec-command.js";
import { execFace } from "./command/exec-tool.js";
import { type ShellCommandNeeds, shellCommandTool } from "./command/shell-command.js";
import { localShellTool, shellTool } from "./command/shell-tool.js";
import { type WriteStdinNeeds, writeStdinTool } from "./command/write-stdin.js";
import { fileSearchFace } from "./files/file-search.js";
import { grepFilesFace, grepFilesTool } from "./files/grep-files.js";
import { listDirFace, listDirTool } from "./files/list-dir/list-dir.js";
import { readFileFace, readFileTool } from "./files/read-file/read-file.js";
import { applyPatchFace } from "./patch/apply-patch-face.js";
import { sessionPatchTool } from "./patch/patch-interception.js";
import { type ViewImageNeeds, viewImageTool } from "./picture/view-image.js";
import { type JsReplNeeds, jsReplResetTool, jsReplTool } from "./repl/js-repl.js";
import { requestUserInputTool, type UserInputNeeds } from "./session/request-user-input.js";
import { updatePlanTool } from "./session/update-plan.js";
import { type WebSearchNeeds, webSearchTool } from "./session/web-search.js";
import type { Tool } from "./tool.js";

/** What the tools of one registry share. Each tool names what it uses, and sees no more. */
export interface SharedParts
  extends ShellCommandNeeds,
    ExecCommandNeeds,
    WriteStdinNeeds,
    ViewImageNeeds,
    UserInputNeeds,
    JsReplNeeds,
    WebSearchNeeds {}

/** Every tool there is, by its name, in the order the model sees them. A new one is a file and a line here. */
const toolMakers = {
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
  // The same for programs.
  applyPatch: (parts: SharedParts) => applyPatchFace(parts.patcher, parts),
  readFile: readFileFace,
  listDir: listDirFace,
  grepFiles: grepFilesFace,
  fileSearch: fileSearchFace,
  exec: execFace,
} satisfies Record<string, (parts: SharedParts) => Tool>;

/** Other names under which models call a tool. */
const aliases = { "container.exec": "shell" } as const satisfies Record<string, keyof typeof toolMakers>;

type Makers = typeof toolMakers;
type Aliases = typeof aliases;

/** The names that a registry knows, other names of a tool among them. */
export type ToolName = keyof Makers | keyof Aliases;

/** The tool of a name, with its own arguments and what it alone tells; of a name that is not known before, any tool. */
export type ToolOf<Name extends string> = Name extends keyof Makers
  ? ReturnType<Makers[Name]>
  : Name extends keyof Aliases
    ? ReturnType<Makers[Aliases[Name]]>
    : Tool;

/** A name that is written out has to be a tool's; one that comes from elsewhere is any text. */
export type NameOfTool<Name extends string> = Name extends ToolName
  ? Name
  : string extends Name
    ? Name
    : never;

/** Makes each tool, by its name, and finds one by any of its names. */
export function makeTools(parts: SharedParts): {
  tools: readonly Tool[];
  find: (name: string) => Tool | undefined;
} {
  const tools = new Map<string, Tool>(
    Object.entries<(shared: SharedParts) => Tool>(toolMakers).map(([name, make]) => [name, make(parts)]),
  );
  const otherNames = new Map<string, string>(Object.entries(aliases));
  return {
    tools: [...tools.values()],
    find: (name) => tools.get(name) ?? tools.get(otherNames.get(name) ?? ""),
  };
}
