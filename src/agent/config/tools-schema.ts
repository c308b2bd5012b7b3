import { z } from "zod";
import { unused } from "../../lib/setting-kinds.js";

export const webSearchMode = z.enum(["cached", "live", "disabled"]);

export const toolsSchema = z.object({
  shell: z
    .enum(["unified_exec", "shell_command", "default", "local", "disabled"])
    .optional()
    .describe("Which tools for running commands the model has")
    .meta({ fallback: "unified_exec" }),
  apply_patch: z
    .union([z.boolean(), z.enum(["freeform", "function"])])
    .optional()
    .describe("Whether the tool is on, as a freeform tool or as a function")
    .meta({ fallback: "by model" }),
  read_file: onOrOff("by model"),
  list_dir: onOrOff("by model"),
  grep_files: onOrOff("by model"),
  view_image: onOrOff("by model"),
  update_plan: z
    // In Codex this is a table with one key.
    .union([z.boolean(), z.object({ enabled: z.boolean().optional() }).transform(({ enabled }) => enabled)])
    .optional()
    .describe("Whether the tool is on; `{ enabled = … }` works too")
    .meta({ fallback: "by model" }),
  request_user_input: onOrOff("on if a person is there to answer"),
  multi_agent: z
    .union([z.boolean(), z.enum(["functions", "namespace"])])
    .optional()
    .describe("Whether the tools for agents are on, as functions of their own or in Codex's namespace")
    .meta({ fallback: "on, by model" }),
  js_repl: onOrOff("false"),
  mcp_resources: onOrOff("on with MCP servers"),
  search_tool_bm25: z
    .boolean()
    .optional()
    .describe("Whether the model finds tools of MCP servers by a search instead of getting all of them")
    .meta({ fallback: "with 100 tools or more" }),
  web_search: z
    // Codex also takes a table of settings here, which does not say whether the tool is on.
    .union([z.boolean(), webSearchMode, z.object({}).transform(() => undefined)])
    .optional()
    .describe("The provider's web search; `true` means `live`")
    .meta({ fallback: "as `web_search`" }),
  experimental_request_user_input: unused,
});

function onOrOff(fallback: string) {
  return z.boolean().optional().describe("Whether the tool is on").meta({ fallback });
}
