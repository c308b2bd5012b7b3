import type { AgentNeeds } from "./agents/agent-call.js";
import { applyAgentChangesTool, readAgentChangesTool } from "./agents/agent-changes.js";
import { agentToolAliases } from "./agents/agent-namespace.js";
import { closeAgentTool } from "./agents/close-agent.js";
import { messageAgentTool } from "./agents/message-agent.js";
import { resumeAgentTool } from "./agents/resume-agent.js";
import { spawnAgentTool } from "./agents/spawn-agent.js";
import { waitForAgentTool } from "./agents/wait-for-agent.js";
import { type ExecCommandNeeds, execCommandTool } from "./command/exec-command.js";
import { execTool } from "./command/exec-tool.js";
import {
  localShellTool,
  type ShellCommandNeeds,
  shellCommandTool,
  shellTool,
} from "./command/shell-tools.js";
import { type WriteStdinNeeds, writeStdinTool } from "./command/write-stdin.js";
import { fileSearchTool } from "./files/file-search.js";
import { grepFilesForPrograms, grepFilesTool } from "./files/grep-files.js";
import { listDirForPrograms, listDirTool } from "./files/list-dir/list-dir.js";
import { readFileForPrograms, readFileTool } from "./files/read-file/read-file.js";
import {
  listMcpResourcesTool,
  listMcpResourceTemplatesTool,
  type McpResourceNeeds,
  readMcpResourceTool,
} from "./mcp/resource-tools.js";
import { type SearchToolsNeeds, searchToolsTool } from "./mcp/search-tools.js";
import { applyPatchForPrograms, sessionPatchTool } from "./patch/apply-patch-tool.js";
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
    AgentNeeds,
    JsReplNeeds,
    McpResourceNeeds,
    SearchToolsNeeds,
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
  spawn_agent: spawnAgentTool,
  send_message_to_agent: messageAgentTool,
  resume_agent: resumeAgentTool,
  wait_for_agent: waitForAgentTool,
  close_agent: closeAgentTool,
  read_agent_changes: readAgentChangesTool,
  apply_agent_changes: applyAgentChangesTool,
  js_repl: jsReplTool,
  js_repl_reset: jsReplResetTool,
  list_mcp_resources: listMcpResourcesTool,
  list_mcp_resource_templates: listMcpResourceTemplatesTool,
  read_mcp_resource: readMcpResourceTool,
  search_tool_bm25: searchToolsTool,
  web_search: webSearchTool,
  // For programs only.
  applyPatch: applyPatchForPrograms,
  readFile: readFileForPrograms,
  listDir: listDirForPrograms,
  grepFiles: grepFilesForPrograms,
  fileSearch: fileSearchTool,
  exec: execTool,
} satisfies Record<string, (needs: ToolDependencies) => Tool>;

const aliases = {
  "container.exec": "shell",
  ...agentToolAliases,
  mcp_list_resources: "list_mcp_resources",
  mcp_read_resource: "read_mcp_resource",
} as const satisfies Record<string, keyof typeof factories>;

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

/** `byName` has aliases, too. */
export function createTools(needs: ToolDependencies): {
  tools: readonly Tool[];
  byName: ReadonlyMap<string, Tool>;
} {
  const tools = Object.entries<(needs: ToolDependencies) => Tool>(factories).map(
    ([name, create]) => [name, create(needs)] as const,
  );
  const byName = new Map(tools);
  for (const [alias, name] of Object.entries(aliases)) byName.set(alias, byName.get(name) as Tool);
  return { tools: tools.map(([, tool]) => tool), byName };
}
