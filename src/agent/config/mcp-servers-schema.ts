import { z } from "zod";
import { BrigError } from "../../errors.js";
import { httpUrl, milliseconds, unused } from "../../lib/setting-kinds.js";
import { LONGEST_TIMER_MS } from "../../lib/time/pause.js";

const seconds = z
  .number()
  .positive()
  .max(Math.floor(LONGEST_TIMER_MS / 1000));
const filled = z.string().min(1);
const names = z.array(filled);
const secretTexts = z.record(z.string(), z.string().meta({ isSecret: true }));
const approvalMode = z.enum(["auto", "prompt", "approve"]);

const variableName = filled.regex(/^[^=\0]+$/, { error: "it must be the name of a variable" });

const serverSchema = z.object({
  command: filled.optional().describe("The program of a stdio server"),
  args: z.array(z.string()).default([]).describe("Its arguments"),
  env: z
    .record(variableName, z.string().meta({ isSecret: true }))
    .default({})
    .describe("Its environment variables"),
  env_vars: z
    .array(
      z.union([
        variableName,
        // The newer form of Codex also says on which machine the variable is read. brig has only one.
        z.object({ name: variableName, source: z.string().optional() }).transform(({ name }) => name),
      ]),
    )
    .default([])
    .describe("Variables of this machine that it gets too; no other one reaches it"),
  cwd: filled.optional().describe("Its working directory").meta({ fallback: "the workspace" }),
  sandbox: z
    .enum(["own", "session", "host"])
    .default("own")
    .describe(
      "Where a stdio server runs: in a container of its own, in the session's, or uncontained on this machine",
    ),
  image: filled.optional().describe("The image of its own container").meta({ fallback: "the session's" }),
  network: z
    .enum(["none", "full"])
    .default("none")
    .describe("The network of its own container, whatever the session's is"),
  url: httpUrl.optional().describe("The address of a server that speaks streamable HTTP"),
  bearer_token: z
    .string()
    .refine(() => false, {
      error: "put the token in an environment variable and name that in bearer_token_env_var",
    })
    .optional()
    .describe("Refused, since files are shown and shared: use `bearer_token_env_var`")
    .meta({ isSecret: true }),
  bearer_token_env_var: variableName
    .optional()
    .describe("The environment variable that holds the bearer token of an HTTP server"),
  http_headers: secretTexts.default({}).describe("Headers of every request to an HTTP server"),
  env_http_headers: z
    .record(z.string(), variableName)
    .default({})
    .describe("Headers by name, each with the environment variable that holds its value"),
  enabled: z.boolean().default(true).describe("Whether it is started"),
  required: z.boolean().default(false).describe("Whether a session fails if it does not start"),
  startup_timeout_sec: seconds
    .optional()
    .describe("Seconds that its start may take, until its tools are listed")
    .meta({ fallback: "30" }),
  startup_timeout_ms: milliseconds
    .optional()
    .describe("The same in milliseconds; `startup_timeout_sec` wins"),
  tool_timeout_sec: seconds.default(120).describe("Seconds that one call of its tools may take"),
  enabled_tools: names
    .optional()
    .describe("The only tools of it that the model gets")
    .meta({ fallback: "all" }),
  disabled_tools: names.default([]).describe("Tools of it that the model does not get"),
  supports_parallel_tool_calls: z
    .boolean()
    .default(false)
    .describe("Whether its tools may run beside other calls of the same response"),
  default_tools_approval_mode: approvalMode
    .optional()
    .describe("`auto` asks about tools that may change or reach something, `prompt` always, `approve` never")
    .meta({ fallback: "auto" }),
  tools: z
    .record(
      z.string(),
      z.object({
        approval_mode: approvalMode
          .optional()
          .describe("The same for one tool")
          .meta({ fallback: "as `default_tools_approval_mode`" }),
      }),
    )
    .default({})
    .describe("Settings of single tools, by the names that the server gives them"),
  name: unused,
  scopes: unused,
  oauth: unused,
  oauth_resource: unused,
  experimental_environment: unused,
  environment_id: unused,
});

const serverName = z
  .string()
  .regex(/^[A-Za-z0-9_-]{1,64}$/, { error: "it must be 1 to 64 letters, digits, `_` or `-`" });

export const mcpServersSchema = z.record(serverName, serverSchema);

/** The settings of a server from a program instead of a file, with the same keys as in config.toml. */
export type McpServerInput = z.input<typeof serverSchema>;

/** Checks the settings and fills in the defaults. Error: `config.invalid`. */
export function parseMcpServers(
  servers: Readonly<Record<string, McpServerInput>>,
): z.output<typeof mcpServersSchema> {
  const parsed = mcpServersSchema.safeParse(servers);
  if (parsed.success) return parsed.data;
  throw new BrigError(`an MCP server is not valid:\n${z.prettifyError(parsed.error)}`, {
    code: "config.invalid",
    hint: "the keys and values are those of [mcp_servers.NAME] in config.toml; see docs/mcp.md",
    cause: parsed.error,
  });
}
