import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { loadConfig } from "../../../../src/agent/config/settings/load-config.js";
import { configKeys } from "../../../support/config-keys.js";

let home = "";

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "brig-config-"));
});

afterEach(() => {
  rmSync(home, { recursive: true });
});

interface Row {
  /** The key as `configKeys` names it, with `<name>` for a name of one's own. */
  key: string;
  /** Values it takes, as TOML. Paths are absolute, since relative ones are resolved. */
  takes: readonly string[];
  /** Values it refuses, as TOML, and what is said of them. */
  refuses: readonly (readonly [string, string])[];
  /** A line of TOML without which the key would be refused. */
  with?: string;
}

const ofStdio = { with: 'mcp_servers.mine.command = "x"' } as const;
const ofHttp = { with: 'mcp_servers.mine.url = "http://127.0.0.1:1"' } as const;
const seconds = {
  takes: ["30", "0.5"],
  refuses: [
    ["0", "is 0: it must be a number above 0, up to 2147483"],
    ["2147484", "is 2147484: it must be a number above 0, up to 2147483"],
    ['"9"', 'is "9": it must be a number above 0, up to 2147483'],
  ],
} as const;

const network = {
  takes: ['"none"', '"full"', '"allowlist:example.org,*.example.org:443"'],
  refuses: [
    ['"open"', '"open" is not a network setting: use none, full, learn or allowlist:HOST,…'],
    ["true", "is true: it must be a string"],
  ],
} as const;

const text = { takes: ['"a"'], refuses: [["1", "is 1: it must be a string"]] } as const;
const filledText = {
  takes: ['"a"'],
  refuses: [
    ['""', 'is "": it must be a non-empty string'],
    ["[]", "is a list: it must be a non-empty string"],
  ],
} as const;
const exporter = {
  takes: ['"none"', '{ otlp-http = { endpoint = "http://127.0.0.1:4318/v1/traces", protocol = "json" } }'],
  refuses: [
    ['"otlp-http"', "it must be none, statsig or a table with otlp-http, otlp-grpc"],
    ['{ otlp-http = { endpoint = "ftp://x" } }', "it must be an http or https URL"],
  ],
} as const;

const path = { takes: ['"/a/b"'], refuses: filledText.refuses } as const;
const isOn = {
  takes: ["true", "false"],
  refuses: [['"yes"', 'is "yes": it must be true or false']],
} as const;
const tokens = {
  takes: ["1", "200_000"],
  refuses: [
    ["0", "is 0: it must be an integer, 1 or more"],
    ["1.5", "is 1.5: it must be an integer, 1 or more"],
    ['"9"', 'is "9": it must be an integer, 1 or more'],
  ],
} as const;
const url = {
  takes: ['"http://127.0.0.1:1/v1"', '"https://example.org"'],
  refuses: [
    ['"ftp://example.org"', 'is "ftp://example.org": it must be an http or https URL'],
    ['"example"', 'is "example": it must be an http or https URL'],
    ['"ws://me:secret@example.org"', "is of a wrong kind: it must be an http or https URL"],
    ['"ws://example.org?key=secret"', "is of a wrong kind: it must be an http or https URL"],
  ],
} as const;
const texts = {
  takes: ["[]", '["a", "b"]'],
  refuses: [['"a"', 'is "a": it must be a list of strings']],
} as const;
const fileNames = {
  takes: ["[]", '["AGENTS.md"]'],
  refuses: [['["a/b"]', '[0] is "a/b": it must be the name of one directory entry']],
} as const;
const textTable = {
  takes: ["{}", '{ a = "b" }'],
  refuses: [["1", "it must be a table of strings"]],
} as const;
const secretTable = {
  takes: textTable.takes,
  refuses: [["{ a = 1 }", "a is of a wrong kind: it must be a string"]],
} as const;

const dollars = {
  takes: ["0", "1.75", "100_000"],
  refuses: [
    ["-1", "is -1: it must be a number from 0 to 100000"],
    ['"1"', 'is "1": it must be a number from 0 to 100000'],
  ],
} as const;

function oneOf(...values: string[]) {
  const words = `${values.slice(0, -1).join(", ")} or ${values.at(-1)}`;
  return {
    takes: values.map((value) => JSON.stringify(value)),
    refuses: [
      ['"nonsense"', `is "nonsense": it must be ${words}`],
      ["7", `is 7: it must be ${words}`],
    ],
  } as const;
}

function integer(min: number, max: number) {
  const words = `it must be an integer from ${min} to ${max}`;
  return {
    takes: [String(min), String(max)],
    refuses: [
      [String(min - 1), words],
      [String(max + 1), words],
      ['"many"', words],
    ],
  } as const;
}

const rows: Row[] = [
  { key: "model", ...filledText },
  { key: "model_provider", ...filledText },
  { key: "model_context_window", ...tokens },
  { key: "model_auto_compact_token_limit", ...tokens },
  { key: "model_reasoning_effort", ...filledText },
  { key: "model_reasoning_summary", ...oneOf("auto", "concise", "detailed", "none") },
  { key: "model_verbosity", ...oneOf("low", "medium", "high") },
  { key: "model_supports_reasoning_summaries", ...isOn },
  { key: "model_instructions_file", ...path },
  { key: "instructions", ...text },
  { key: "developer_instructions", ...text },
  { key: "compact_prompt", ...text },
  { key: "service_tier", ...text },
  { key: "openai_base_url", ...url },
  { key: "chatgpt_base_url", ...url },
  {
    key: "approval_policy",
    takes: ['"untrusted"', '"on-failure"', '"on-request"', '"never"', "{ granular = { rules = true } }"],
    refuses: [
      [
        '"always"',
        'is "always": it must be untrusted, on-failure, on-request, never or a table with granular',
      ],
      ["{ granular = { rules = 1 } }", "approval_policy.granular.rules is 1: it must be true or false"],
      ["{ granular = { rulez = true } }", "there is no key approval_policy.granular.rulez"],
    ],
  },
  { key: "sandbox_mode", ...oneOf("read-only", "workspace-write", "danger-full-access") },
  {
    key: "sandbox_workspace_write.writable_roots",
    takes: ["[]", '["/a"]'],
    refuses: [
      ['"/a"', 'is "/a": it must be a list of strings'],
      ["[1]", "[0] is 1: it must be a non-empty string"],
    ],
  },
  { key: "sandbox_workspace_write.network_access", ...isOn },
  { key: "sandbox_workspace_write.exclude_slash_tmp", ...isOn },
  { key: "sandbox_workspace_write.exclude_tmpdir_env_var", ...isOn },
  { key: "policy", ...path },
  { key: "network", ...network },
  { key: "setup.command", ...texts },
  { key: "setup.network", ...network },
  { key: "setup.timeout_ms", ...integer(1, 2_147_483_647) },
  { key: "experimental_supported_tools", ...texts },
  { key: "workspace_kind", ...oneOf("bind", "overlay") },
  { key: "git", ...oneOf("protected", "branch") },
  { key: "container_image", ...filledText },
  { key: "runtime", ...filledText },
  { key: "lease_seconds", ...integer(1, 604_800) },
  { key: "shell_environment_policy.inherit", ...oneOf("all", "core", "none") },
  { key: "shell_environment_policy.ignore_default_excludes", ...isOn },
  { key: "shell_environment_policy.exclude", ...texts },
  {
    key: "shell_environment_policy.set",
    takes: secretTable.takes,
    refuses: [...secretTable.refuses, ['{ "a=b" = "c" }', "it must be the name of a variable"]],
  },
  { key: "shell_environment_policy.include_only", ...texts },
  { key: "allow_login_shell", ...isOn },
  { key: "background_terminal_max_timeout", ...integer(1, 2_147_483_647) },
  { key: "turn_timeout_ms", ...integer(1, 2_147_483_647) },
  { key: "tool_output_token_limit", ...tokens },
  { key: "features.multi_agent", ...isOn },
  { key: "tools.shell", ...oneOf("unified_exec", "shell_command", "default", "local", "disabled") },
  {
    key: "tools.apply_patch",
    takes: ["true", "false", '"freeform"', '"function"'],
    refuses: [['"grammar"', 'is "grammar": it must be true, false, freeform or function']],
  },
  { key: "tools.read_file", ...isOn },
  { key: "tools.list_dir", ...isOn },
  { key: "tools.grep_files", ...isOn },
  { key: "tools.view_image", ...isOn },
  {
    key: "tools.update_plan",
    takes: ["true", "false"],
    refuses: [["1", "is 1: it must be true, false or a table"]],
  },
  { key: "tools.request_user_input", ...isOn },
  {
    key: "tools.multi_agent",
    takes: ["true", "false", '"functions"', '"namespace"'],
    refuses: [['"v1"', 'is "v1": it must be true, false, functions or namespace']],
  },
  { key: "tools.js_repl", ...isOn },
  { key: "tools.mcp_resources", ...isOn },
  { key: "tools.search_tool_bm25", ...isOn },
  {
    key: "tools.web_search",
    takes: ["true", "false", '"cached"', '"live"', '"disabled"'],
    refuses: [['"on"', 'is "on": it must be true, false, cached, live, disabled or a table']],
  },
  { key: "web_search", ...oneOf("cached", "live", "disabled") },
  {
    key: "project_doc_max_bytes",
    takes: ["0", "32768"],
    refuses: [["-1", "is -1: it must be an integer, 0 or more"]],
  },
  { key: "project_doc_fallback_filenames", ...fileNames },
  { key: "project_root_markers", ...fileNames },
  { key: "include_environment_context", ...isOn },
  { key: "include_permissions_instructions", ...isOn },
  { key: "history.persistence", ...oneOf("save-all", "none") },
  { key: "oauth.issuer", ...url },
  { key: "oauth.client_id", ...filledText },
  { key: "model_providers.<name>.name", ...text },
  { key: "model_providers.<name>.base_url", ...url },
  { key: "model_providers.<name>.env_key", ...text },
  { key: "model_providers.<name>.env_key_instructions", ...text },
  {
    key: "model_providers.<name>.experimental_bearer_token",
    takes: ['"a"'],
    refuses: [["123456", "is of a wrong kind: it must be a string"]],
  },
  { key: "model_providers.<name>.wire_api", ...oneOf("responses", "chat") },
  { key: "model_providers.<name>.query_params", ...secretTable },
  { key: "model_providers.<name>.http_headers", ...secretTable },
  { key: "model_providers.<name>.env_http_headers", ...textTable },
  { key: "model_providers.<name>.request_max_retries", ...integer(0, 100) },
  { key: "model_providers.<name>.stream_max_retries", ...integer(0, 100) },
  { key: "model_providers.<name>.stream_idle_timeout_ms", ...integer(1, 2_147_483_647) },
  { key: "model_providers.<name>.response_timeout_ms", ...integer(1, 2_147_483_647) },
  { key: "model_providers.<name>.requires_openai_auth", ...isOn },
  { key: "mcp_servers.<name>.command", ...filledText },
  { key: "mcp_servers.<name>.args", ...ofStdio, ...texts },
  { key: "mcp_servers.<name>.env", ...ofStdio, ...secretTable },
  { key: "mcp_servers.<name>.env_vars", ...ofStdio, ...texts },
  { key: "mcp_servers.<name>.cwd", ...ofStdio, ...filledText },
  { key: "mcp_servers.<name>.sandbox", ...ofStdio, ...oneOf("own", "session", "host") },
  { key: "mcp_servers.<name>.image", ...ofStdio, ...filledText },
  { key: "mcp_servers.<name>.network", ...ofStdio, ...oneOf("none", "full") },
  { key: "mcp_servers.<name>.url", ...url },
  {
    key: "mcp_servers.<name>.bearer_token",
    takes: [],
    refuses: [
      [
        '"s3cret"',
        "is of a wrong kind: put the token in an environment variable and name that in bearer_token_env_var",
      ],
    ],
  },
  { key: "mcp_servers.<name>.bearer_token_env_var", ...ofHttp, ...filledText },
  { key: "mcp_servers.<name>.http_headers", ...ofHttp, ...secretTable },
  { key: "mcp_servers.<name>.env_http_headers", ...ofHttp, ...textTable },
  { key: "mcp_servers.<name>.enabled", ...ofStdio, ...isOn },
  { key: "mcp_servers.<name>.required", ...ofStdio, ...isOn },
  { key: "mcp_servers.<name>.startup_timeout_sec", ...ofStdio, ...seconds },
  { key: "mcp_servers.<name>.startup_timeout_ms", ...ofStdio, ...integer(1, 2_147_483_647) },
  { key: "mcp_servers.<name>.tool_timeout_sec", ...ofStdio, ...seconds },
  { key: "mcp_servers.<name>.enabled_tools", ...ofStdio, ...texts },
  { key: "mcp_servers.<name>.disabled_tools", ...ofStdio, ...texts },
  { key: "mcp_servers.<name>.supports_parallel_tool_calls", ...ofStdio, ...isOn },
  {
    key: "mcp_servers.<name>.default_tools_approval_mode",
    ...ofStdio,
    ...oneOf("auto", "prompt", "approve"),
  },
  {
    key: "mcp_servers.<name>.tools.<name>.approval_mode",
    ...ofStdio,
    ...oneOf("auto", "prompt", "approve"),
  },
  {
    key: "agents.max_depth",
    takes: ["0", "1", "16"],
    refuses: [["17", "is 17: it must be an integer from 0 to 16"]],
  },
  {
    key: "agents.max_threads",
    takes: ["1", "64"],
    refuses: [["0", "is 0: it must be an integer from 1 to 64"]],
  },
  { key: "agents.max_tokens", ...tokens },
  {
    key: "agents.max_time_ms",
    takes: ["1", "3600000"],
    refuses: [["0", "is 0: it must be an integer from 1 to 2147483647"]],
  },
  { key: "agents.models", ...texts },
  { key: "agents.<name>.description", ...filledText },
  { key: "agents.<name>.config_file", ...path },
  { key: "agents.<name>.model", ...filledText },
  { key: "agents.<name>.model_reasoning_effort", ...filledText },
  { key: "agents.<name>.developer_instructions", ...filledText },
  { key: "agents.<name>.sandbox_mode", ...oneOf("read-only", "workspace-write", "danger-full-access") },
  {
    key: "agents.<name>.approval_policy",
    takes: ['"untrusted"', "{ granular = { rules = true } }"],
    refuses: [
      [
        '"always"',
        'is "always": it must be untrusted, on-failure, on-request, never or a table with granular',
      ],
    ],
  },
  { key: "agents.<name>.nickname_candidates", ...texts },
  { key: "egress.rules", takes: [], refuses: [["1", "is 1: it must be a list of tables"]] },
  // What is wrong in one is in the tests of its schema.
  ...["hosts", "headers", "query", "plain_http", "env", "file", "command"].map((key) => ({
    key: `egress.secrets.<name>.${key}`,
    ...{ takes: [], refuses: [] },
  })),
  ...["hosts", "regions", "services", "plain_http"].map((key) => ({
    key: `egress.aws_keys.<name>.${key}`,
    ...{ takes: [], refuses: [] },
  })),
  ...["access_key_id", "secret_access_key", "session_token"].flatMap((part) =>
    ["env", "file", "command"].map((key) => ({
      key: `egress.aws_keys.<name>.${part}.${key}`,
      ...{ takes: [], refuses: [] },
    })),
  ),
  { key: "egress.aws_keys.<name>.command", takes: [], refuses: [] },
  ...["form", "variable", "file"].map((key) => ({
    key: `egress.canaries.<name>.${key}`,
    ...{ takes: [], refuses: [] },
  })),
  { key: "egress.ca_files", ...texts },
  { key: "images.alias", ...textTable },
  {
    key: "images.budget",
    takes: ['"50GB"', '"1.5 GiB"', '"0MB"'],
    refuses: [
      ['"50"', 'is "50": it must be a size such as 50GB or 512MiB'],
      ["50", "is 50: it must be a string"],
    ],
  },
  { key: "templates", ...textTable },
  { key: "otel.environment", ...filledText },
  { key: "otel.trace_exporter", ...exporter },
  { key: "otel.metrics_exporter", ...exporter },
  { key: "otel.capture_message_content", ...isOn },
  { key: "prices.<name>.input", ...dollars },
  { key: "prices.<name>.cached_input", ...dollars },
  { key: "prices.<name>.cache_write_input", ...dollars },
  { key: "prices.<name>.output", ...dollars },
  { key: "projects.<name>.trust_level", ...oneOf("trusted", "untrusted") },
  { key: "profile", takes: [], refuses: [["1", "is 1: it must be a string"]] },
];

function load(toml: string) {
  const file = join(home, "config.toml");
  writeFileSync(file, toml);
  return loadConfig({ brigHome: home, codexHome: join(home, "none") });
}

function valueAt(config: object, key: string): unknown {
  return key.split(".").reduce<unknown>((value, part) => Object(value)[part], config);
}

describe("the configuration", () => {
  it("has a row in this table for each of its keys", () => {
    expect(rows.map(({ key }) => key)).toEqual(configKeys().map(({ key }) => key));
  });

  it.each(
    rows.flatMap(({ key, takes, with: line = "" }) =>
      takes.map((value) => [key.replaceAll("<name>", "mine"), value, line] as const),
    ),
  )("takes %s = %s", async (key, value, line) => {
    const { config, warnings } = await load(`${key} = ${value}\n${line}`);
    const expected = value.startsWith("{") ? expect.any(Object) : JSON.parse(value.replaceAll("_000", "000"));
    expect(valueAt(config, key)).toEqual(expected);
    expect(warnings.filter((warning) => !warning.includes("inherit"))).toEqual([]);
  });

  it.each(
    rows.flatMap(({ key, refuses }) =>
      refuses.map(([value, message]) => [key.replaceAll("<name>", "mine"), value, message] as const),
    ),
  )("refuses %s = %s and says why, and where", async (key, value, message) => {
    const failure = await load(`# a comment\n\n${key} = ${value}`).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: "config.invalid", message: expect.stringContaining(message) });
    const [first] = String((failure as Error).message).split("\n");
    expect(first).toContain(`${home}/config.toml:3: `);
    expect(first).toContain(key);
  });

  it.each(
    rows.filter(
      ({ key }) =>
        !/^(?:history|oauth|model_providers|mcp_servers|agents|egress|images|otel|prices|projects|profile|templates)\b/.test(
          key,
        ),
    ),
  )("takes $key in a profile, and refuses there what it refuses above", async ({ key, takes, refuses }) => {
    const [value = ""] = takes;
    const [[wrong] = [""]] = refuses;
    const profile = (content: string) => `profile = "p"\n[profiles.p]\n${key} = ${content}`;
    const { config, sources } = await load(profile(value));
    if (!value.startsWith("{")) {
      expect(valueAt(config, key)).toEqual(JSON.parse(value));
      expect(sources.get(key)).toEqual({
        kind: "profile",
        profile: "p",
        file: join(home, "config.toml"),
        line: 3,
      });
    }
    await expect(load(profile(wrong))).rejects.toMatchObject({
      code: "config.invalid",
      message: expect.stringContaining(`config.toml:3: profiles.p.${key}`),
    });
  });

  it.each([true, false])("takes the table that Codex has for its plan, enabled = %s", async (enabled) => {
    const { config, warnings } = await load(`[tools.update_plan]\nenabled = ${enabled}`);
    expect(config.tools.update_plan).toBe(enabled);
    expect(warnings).toEqual([]);
  });

  it("takes the table of settings that Codex has for its search", async () => {
    const { config, warnings } = await load('[tools.web_search]\ncontext_size = "low"');
    expect(config.tools.web_search).toBeUndefined();
    expect(warnings).toEqual([]);
  });

  it("takes Codex's newer form of env_vars", async () => {
    const { config } = await load(
      '[mcp_servers.a]\ncommand = "x"\nenv_vars = ["A", { name = "B", source = "local" }]',
    );
    expect(config.mcp_servers.a?.env_vars).toEqual(["A", "B"]);
  });

  it.each([
    ["enabled = true", "mcp_servers.a has neither a command nor a url"],
    ['command = "x"\nurl = "http://a.org"', "mcp_servers.a.url excludes command"],
    ['url = "http://a.org"\nargs = ["x"]', "mcp_servers.a.args is for a stdio server"],
    ['url = "http://a.org"\nsandbox = "host"', "mcp_servers.a.sandbox is for a stdio server"],
    ['command = "x"\nbearer_token_env_var = "T"', "mcp_servers.a.bearer_token_env_var is for an HTTP server"],
    [
      'command = "x"\nsandbox = "host"\nnetwork = "full"',
      "mcp_servers.a.network is for a server in a container of its own",
    ],
  ])("refuses an MCP server whose keys do not fit together: %j", async (toml, message) => {
    await expect(load(`[mcp_servers.a]\n${toml}`)).rejects.toMatchObject({
      code: "config.invalid",
      message: expect.stringMatching(new RegExp(`^${home}/config.toml:[0-9]: ${message}$`)),
      hint: expect.any(String),
    });
  });

  it("refuses a name of an MCP server that tools could not be called by", async () => {
    await expect(load('[mcp_servers."a b"]\ncommand = "x"')).rejects.toMatchObject({
      code: "config.invalid",
      message: expect.stringContaining("it must be 1 to 64 letters, digits, `_` or `-`"),
    });
  });

  it("suggests the value that was probably meant", async () => {
    await expect(load('sandbox_mode = "workspace-wirte"')).rejects.toMatchObject({
      hint: "did you mean workspace-write?",
    });
  });

  it("names every wrong value at once", async () => {
    const failure = await load('model = 1\nsandbox_mode = "x"\n').catch((error: unknown) => error);
    expect((failure as Error).message.split("\n")).toEqual([
      `${home}/config.toml:1: model is 1: it must be a non-empty string`,
      `${home}/config.toml:2: sandbox_mode is "x": it must be read-only, workspace-write or danger-full-access`,
    ]);
  });
});
