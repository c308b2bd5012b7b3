import type { Tool as ListedTool, ToolAnnotations } from "@modelcontextprotocol/server";
import { BrigError } from "../../../errors.js";
import type { FunctionToolSpec, JsonSchema, ToolSandbox } from "../../../tools/index.js";
import { createToolRegistry } from "../../../tools/index.js";
import type { ToolService } from "./served-sandbox.js";

/**
 * With these parameters a model asks to run a command outside its sandbox. That is never permitted here, so
 * they are not listed, and a call that has them is refused.
 */
const escalationParameters: ReadonlySet<string> = new Set([
  "sandbox_permissions",
  "justification",
  "prefix_rule",
]);

const looks: ToolAnnotations = { readOnlyHint: true, openWorldHint: false };

const titles: Readonly<Record<string, string>> = {
  shell: "Run a command",
  shell_command: "Run a command",
  exec_command: "Run a command",
  write_stdin: "Write to a running command",
  read_file: "Read a file",
  list_dir: "List a directory",
  grep_files: "Search in files",
  view_image: "View an image",
  apply_patch: "Edit files",
  update_plan: "Update the plan",
  js_repl: "Run JavaScript",
  js_repl_reset: "Reset the JavaScript session",
};

/** The tools as a client sees them: those that are on, with the properties of this sandbox. */
export function listedTools({ gates, hasNetwork, canWrite }: ToolService): ListedTool[] {
  const changes: ToolAnnotations = {
    readOnlyHint: false,
    destructiveHint: canWrite,
    openWorldHint: hasNetwork,
  };
  const byName: Readonly<Record<string, ToolAnnotations>> = {
    read_file: looks,
    list_dir: looks,
    grep_files: looks,
    view_image: looks,
    update_plan: looks,
    apply_patch: { ...changes, openWorldHint: false },
  };
  return createToolRegistry(nowhere, { cwd: "/", gates })
    .getSpecs()
    .filter((spec): spec is FunctionToolSpec => spec.type === "function")
    .map(({ name, description, parameters }) => ({
      name,
      title: titles[name] ?? name,
      description,
      inputSchema: inputSchema(parameters),
      annotations: byName[name] ?? changes,
    }));
}

/** The same tools for clients without a session, which name the sandbox in each call. */
export function withSandboxArgument(tools: readonly ListedTool[]): ListedTool[] {
  const sandbox = { type: "string", description: "The sandbox, as open_sandbox returned it." };
  return tools.map(({ inputSchema, ...tool }) => ({
    ...tool,
    inputSchema: {
      ...inputSchema,
      properties: { sandbox, ...inputSchema.properties },
      required: ["sandbox", ...(inputSchema.required ?? [])],
    },
  }));
}

function inputSchema({ properties = {}, required, ...schema }: JsonSchema): ListedTool["inputSchema"] {
  const offered = Object.entries(properties).filter(([name]) => !escalationParameters.has(name));
  return {
    ...schema,
    type: "object",
    properties: Object.fromEntries(offered) as Record<string, object>,
    ...(required === undefined ? {} : { required: [...required] }),
  } as ListedTool["inputSchema"];
}

const refuse = () => Promise.reject(new BrigError("there is no sandbox", { code: "exec.invalid" }));

/** A sandbox that can do nothing. The registry needs one even if its tools are only listed. */
const nowhere: ToolSandbox = {
  spawn: refuse,
  files: {
    read: refuse,
    readPastHole: refuse,
    stat: refuse,
    list: refuse,
    writeEach: refuse,
    mkdir: refuse,
    remove: refuse,
  },
};
