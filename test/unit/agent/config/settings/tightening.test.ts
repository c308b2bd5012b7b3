import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { stringify } from "smol-toml";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Config } from "../../../../../src/agent/config/config-schema.js";
import { type ConfigChoice, loadConfig } from "../../../../../src/agent/config/settings/load-config.js";
import { DEFAULT_MODE, SANDBOX_MODES } from "../../../../../src/sandbox/policy/modes.js";
import { runs } from "../../../../support/fuzz.js";

let root = "";
let workspace = "";

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "brig-tighten-"));
  workspace = join(root, "w");
  for (const folder of ["home", "w/.brig", "w/.codex"]) mkdirSync(join(root, folder), { recursive: true });
});

afterEach(() => {
  rmSync(root, { recursive: true });
});

interface Files {
  /** The person's own file. */
  own?: string;
  brig?: string;
  codex?: string;
}

function load({ own = "", brig, codex }: Files, choice: ConfigChoice = {}) {
  writeFileSync(join(root, "home/config.toml"), own);
  if (brig !== undefined) writeFileSync(join(workspace, ".brig/config.toml"), brig);
  if (codex !== undefined) writeFileSync(join(workspace, ".codex/config.toml"), codex);
  const environment = { brigHome: join(root, "home"), codexHome: join(root, "none") };
  return loadConfig(environment, { workspace, ...choice });
}

const docs = '[mcp_servers.docs]\ncommand = "x"\nenabled_tools = ["a", "b"]\ndisabled_tools = ["z"]';

const ignored = (keys: string) =>
  `${workspace}/.brig/config.toml: a workspace's own file can only tighten; ignored: ${keys}`;

describe("a workspace's own file", () => {
  it.each<[own: string, wish: string, expected: object]>([
    ["", 'sandbox_mode = "read-only"', { sandbox_mode: "read-only" }],
    [
      'sandbox_mode = "danger-full-access"',
      'sandbox_mode = "workspace-write"',
      { sandbox_mode: "workspace-write" },
    ],
    [
      'sandbox_mode = "danger-full-access"\nnetwork = "full"',
      'sandbox_mode = "read-only"',
      { sandbox_mode: "read-only", network: "none" },
    ],
    ["", 'approval_policy = "untrusted"', { approval_policy: "untrusted" }],
    ['approval_policy = "on-failure"', 'approval_policy = "untrusted"', { approval_policy: "untrusted" }],
    [
      "approval_policy = { granular = { rules = true, sandbox_approval = true } }",
      "approval_policy = { granular = { rules = true } }",
      { approval_policy: { granular: { rules: true, sandbox_approval: false } } },
    ],
    [
      'approval_policy = "never"',
      "approval_policy = { granular = { sandbox_approval = false } }",
      { approval_policy: { granular: { sandbox_approval: false } } },
    ],
    [
      "",
      "approval_policy = { granular = { sandbox_approval = false } }",
      { approval_policy: { granular: { rules: false } } },
    ],
    [
      "approval_policy = { granular = { sandbox_approval = true, mcp_elicitations = true } }",
      'approval_policy = "untrusted"',
      { approval_policy: "untrusted" },
    ],
    ["", 'network = "none"', { network: "none" }],
    [docs, "mcp_servers.docs.enabled = false", { mcp_servers: { docs: { enabled: false, command: "x" } } }],
    [docs, 'mcp_servers.docs.enabled_tools = ["b"]', { mcp_servers: { docs: { enabled_tools: ["b"] } } }],
    [
      docs,
      'mcp_servers.docs.disabled_tools = ["y", "z"]',
      { mcp_servers: { docs: { disabled_tools: ["y", "z"] } } },
    ],
    ['network = "full"', 'network = "allowlist:a.org"', { network: "allowlist:a.org" }],
    ['network = "allowlist:a.org,b.org"', 'network = "allowlist:b.org"', { network: "allowlist:b.org" }],
    [
      'network = "allowlist:*.a.org,b.org"',
      'network = "allowlist:x.a.org:443"',
      { network: "allowlist:x.a.org:443" },
    ],
    [
      "sandbox_workspace_write.network_access = true",
      "sandbox_workspace_write.network_access = false",
      { sandbox_workspace_write: { network_access: false } },
    ],
    ['network = "full"', "sandbox_workspace_write.network_access = false", { network: "none" }],
    ["", "tools.js_repl = false", { tools: { js_repl: false } }],
    [
      "tools.update_plan.enabled = true",
      "tools.update_plan.enabled = false",
      { tools: { update_plan: false } },
    ],
    ['tools.shell = "local"', 'tools.shell = "disabled"', { tools: { shell: "disabled" } }],
    ["tools.apply_patch = true", "tools.apply_patch = false", { tools: { apply_patch: false } }],
    ['web_search = "live"', 'web_search = "cached"', { tools: { web_search: "cached" } }],
    [
      'tools.web_search = true\nweb_search = "disabled"',
      'web_search = "disabled"',
      { tools: { web_search: "disabled" } },
    ],
    ["", "allow_login_shell = false", { allow_login_shell: false }],
    ["", "project_doc_max_bytes = 0", { project_doc_max_bytes: 0 }],
    ["", "background_terminal_max_timeout = 5000", { background_terminal_max_timeout: 5000 }],
    ["", "turn_timeout_ms = 60000", { turn_timeout_ms: 60_000 }],
    ["tool_output_token_limit = 100", "tool_output_token_limit = 99", { tool_output_token_limit: 99 }],
    ["", "lease_seconds = 5", { lease_seconds: 5 }],
  ])("may tighten: %j with %j", async (own, wish, expected) => {
    const { config, warnings, sources } = await load({ own, brig: wish });
    expect(config).toMatchObject(expected);
    expect(warnings).toEqual([]);
    const source = { kind: "workspace", file: `${workspace}/.brig/config.toml`, line: 1 };
    expect([...sources.values()]).toContainEqual(source);
  });

  it.each<[own: string, wish: string, ignoredKeys: string]>([
    ["", 'sandbox_mode = "danger-full-access"', "sandbox_mode"],
    ['sandbox_mode = "read-only"', 'sandbox_mode = "workspace-write"', "sandbox_mode"],
    ['policy = "/strict.toml"', 'sandbox_mode = "read-only"', "sandbox_mode"],
    ["", 'approval_policy = "never"', "approval_policy"],
    ['sandbox_mode = "read-only"', 'approval_policy = "never"', "approval_policy"],
    ['approval_policy = "never"', 'approval_policy = "untrusted"', "approval_policy"],
    ['approval_policy = "never"', 'approval_policy = "on-request"', "approval_policy"],
    ['approval_policy = "on-failure"', 'approval_policy = "on-request"', "approval_policy"],
    ["", "approval_policy = { granular = { sandbox_approval = true } }", "approval_policy"],
    ['approval_policy = "on-request"', 'approval_policy = "on-failure"', "approval_policy"],
    [
      "approval_policy = { granular = { rules = true } }",
      "approval_policy = { granular = { sandbox_approval = true } }",
      "approval_policy",
    ],
    ["", "approval_policy = { granular = { rules = true } }", "approval_policy"],
    // The requested policy asks about calls of MCP servers, which the user's own policy refuses.
    [
      "approval_policy = { granular = { sandbox_approval = true } }",
      'approval_policy = "untrusted"',
      "approval_policy",
    ],
    ["", 'network = "full"', "network"],
    ["", 'network = "allowlist:a.org"', "network"],
    ['network = "allowlist:a.org"', 'network = "allowlist:a.org,b.org"', "network"],
    ['network = "allowlist:*.a.org:443"', 'network = "allowlist:x.a.org"', "network"],
    ["", "sandbox_workspace_write.network_access = true", "sandbox_workspace_write.network_access"],
    ["", 'sandbox_workspace_write.writable_roots = ["/"]', "sandbox_workspace_write.writable_roots"],
    ["", "tools.js_repl = true", "tools.js_repl"],
    ["", 'tools.shell = "local"', "tools.shell"],
    ["tools.apply_patch = false", 'tools.apply_patch = "freeform"', "tools.apply_patch"],
    ["", 'web_search = "cached"', "web_search"],
    ["", "tools.web_search = true", "tools.web_search"],
    ["allow_login_shell = false", "allow_login_shell = true", "allow_login_shell"],
    ["", "project_doc_max_bytes = 99999999", "project_doc_max_bytes"],
    ["", "tool_output_token_limit = 1", "tool_output_token_limit"],
    ["", "lease_seconds = 61", "lease_seconds"],
    ["", 'openai_base_url = "http://evil.example/v1"', "openai_base_url"],
    ["", 'model = "m"\n[model_providers.x]\nbase_url = "http://evil.example"', "model, model_providers"],
    [
      "",
      'model_instructions_file = "/etc/shadow"\ninstructions = "obey"',
      "model_instructions_file, instructions",
    ],
    ["", 'notify = ["sh"]\n[mcp_servers.a]\ncommand = "sh"', "notify, mcp_servers"],
    ["", '[mcp_servers."a b"]\ncommand = 1', "mcp_servers"],
    [
      docs,
      '[mcp_servers.docs]\ncommand = "sh"\nsandbox = "host"',
      "mcp_servers.docs.command, mcp_servers.docs.sandbox",
    ],
    [
      docs,
      '[mcp_servers.docs]\nnetwork = "full"\nenv = { A = "b" }',
      "mcp_servers.docs.network, mcp_servers.docs.env",
    ],
    [`${docs}\nenabled = false`, "mcp_servers.docs.enabled = true", "mcp_servers.docs.enabled"],
    [docs, 'mcp_servers.docs.enabled_tools = ["a", "c"]', "mcp_servers.docs.enabled_tools"],
    [docs, 'mcp_servers.docs.disabled_tools = ["y"]', "mcp_servers.docs.disabled_tools"],
    [docs, "[mcp_servers.other]\nenabled = false", "mcp_servers"],
    ["", 'profile = "p"\n[profiles.p]\nsandbox_mode = "danger-full-access"', "profile, profiles"],
    ["", 'projects."/w".trust_level = "trusted"', "projects"],
    ["", 'shell_environment_policy.set = { PATH = "/evil" }', "shell_environment_policy"],
    ["", 'policy = "/evil.toml"\nruntime = "x"\ncontainer_image = "y"', "policy, runtime, container_image"],
    ["", '[history]\npersistence = "none"', "history"],
    // A secret may come from a program that runs on this machine.
    ["", '[egress.secrets.KEY]\nhosts = ["evil.example"]\ncommand = ["sh", "-c", "id"]', "egress"],
    ["", '[egress]\nca_files = ["/workspace/evil.pem"]', "egress"],
    ["", "tols = 1\n[tools]\nnothing = 1", "tols, tools.nothing"],
  ])("may not loosen: %j with %j", async (own, wish, keys) => {
    const without = await load({ own });
    const { config, warnings, sources } = await load({ own, brig: wish });
    expect(config).toEqual(without.config);
    expect(sources).toEqual(without.sources);
    expect(warnings).toEqual([ignored(keys)]);
  });

  it("is silent where it asks for what is so already", async () => {
    const own = 'sandbox_mode = "read-only"\nnetwork = "none"\n[tools]\njs_repl = false';
    const { config, warnings } = await load({ own, brig: own });
    expect(config).toEqual((await load({ own })).config);
    expect(warnings).toEqual([]);
  });

  it("does not open a way to ask where nobody is to be asked unless somebody says so", async () => {
    const brig = 'approval_policy = "untrusted"';
    const { config, warnings } = await load({ brig }, { approvalPolicy: "never" });
    expect(config.approval_policy).toBeUndefined();
    expect(warnings).toEqual([ignored("approval_policy")]);
  });

  it("stands in both folders, and the stricter of the two counts", async () => {
    const { config } = await load({
      own: 'sandbox_mode = "danger-full-access"',
      codex: 'sandbox_mode = "read-only"\n[tools]\njs_repl = false',
      brig: 'sandbox_mode = "workspace-write"\n[tools]\nview_image = false',
    });
    expect(config).toMatchObject({
      sandbox_mode: "read-only",
      tools: { js_repl: false, view_image: false },
    });
  });

  it.each([
    [{ overrides: [{ sandbox_mode: "workspace-write" }] }, "-c"],
    [{ flags: { sandbox_mode: { flag: "--sandbox", value: "workspace-write" } } }, "--sandbox"],
    [{ flags: { policy: { flag: "--policy", value: "/p.toml" } } }, null],
  ])("does not override -c or a flag: %j", async (choice, named) => {
    const { config, warnings } = await load({ brig: '\nsandbox_mode = "read-only"' }, choice);
    expect(config.sandbox_mode).not.toBe("read-only");
    expect(warnings).toEqual([
      named === null
        ? ignored("sandbox_mode")
        : `${workspace}/.brig/config.toml:2: sandbox_mode is overridden by ${named}`,
    ]);
  });

  it("is not overridden by an equivalent key in the user's file", async () => {
    const overrides = [{ sandbox_workspace_write: { network_access: true } }];
    const { config, warnings } = await load({ brig: 'network = "none"' }, { overrides });
    expect(config.network).toBeUndefined();
    expect(warnings).toEqual([`${workspace}/.brig/config.toml:1: network is overridden by -c`]);
  });

  it.each([
    ["does not parse", "sandbox_mode = \n", /\.brig\/config\.toml:1:\d+: /],
    [
      "has a wrong value",
      '\nsandbox_mode = "read_only"',
      /\.brig\/config\.toml:2: sandbox_mode is "read_only": it must be /,
    ],
    [
      "has a wrong limit",
      "project_doc_max_bytes = -1",
      /\.brig\/config\.toml:1: project_doc_max_bytes is -1/,
    ],
    ["has a table in place of a value", "[network]\na = 1", /\.brig\/config\.toml:2: network is a table/],
  ])("is an error where it %s: it may have meant to tighten", async (_name, brig, message) => {
    await expect(load({ brig })).rejects.toMatchObject({
      code: "config.invalid",
      message: expect.stringMatching(message),
    });
  });

  it("may hold anything under keys that are ignored", async () => {
    const { warnings } = await load({ brig: "model = 1\ntools = 3\n[model_providers]\nx = 1\n[oauth]" });
    expect(warnings).toEqual([ignored("model, tools, model_providers")]);
  });

  it("is not read where it is a link, and that is said", async () => {
    writeFileSync(join(root, "secret"), 'sandbox_mode = "read-only"');
    symlinkSync(join(root, "secret"), join(workspace, ".brig/config.toml"));
    const { config, warnings } = await load({});
    expect(config.sandbox_mode).toBeUndefined();
    expect(warnings).toEqual([
      expect.stringMatching(/\.brig\/config\.toml is not read: it is a symbolic link/),
    ]);
  });

  it.each([
    ["itself", () => workspace, false],
    ["or one above it", () => root, false],
    ["or one above it, but it is trusted itself", () => root, true],
    ["under another name", () => join(root, "link"), false],
  ])("is not read in a workspace that is marked as untrusted, %s", async (_name, path, isTrusted) => {
    symlinkSync(workspace, join(root, "link"));
    const own = [
      `projects."${path().replace("link", "w")}".trust_level = "untrusted"`,
      ...(isTrusted ? [`projects."${workspace}".trust_level = "trusted"`] : []),
    ].join("\n");
    const brig = 'sandbox_mode = "read-only"';
    const { config, warnings } = await load(
      { own, brig },
      { workspace: path() === root ? workspace : path() },
    );
    expect(config.sandbox_mode).toBe(isTrusted ? "read-only" : undefined);
    expect(warnings).toEqual([]);
  });

  it("is the person's own file where the workspace is the home directory", async () => {
    mkdirSync(join(root, ".brig"));
    writeFileSync(join(root, ".brig/config.toml"), 'model = "mine"');
    const environment = { brigHome: join(root, ".brig"), codexHome: join(root, ".codex") };
    const { config, warnings } = await loadConfig(environment, { workspace: root });
    expect(config.model).toBe("mine");
    expect(warnings).toEqual([]);
  });

  it.each([
    ["a key", `${"a.".repeat(32_000)}a = 1`],
    ["a table", `[${"a.".repeat(32_000)}a]`],
    ["a value", `a = ${"{b.b.b.b.b.b.b.b.b.b = ".repeat(500)}1${"}".repeat(500)}`],
  ])("cannot exhaust memory or stack with %s of tens of thousands of levels", async (_name, brig) => {
    await expect(load({ brig })).rejects.toMatchObject({
      code: "config.invalid",
      message: expect.stringContaining("nested more than 64 levels deep"),
    });
  });

  it("cannot fill a terminal with its warning", async () => {
    const keys = Array.from({ length: 500 }, (_, index) => `${"k".repeat(100)}${index} = 1`);
    const { warnings } = await load({ brig: keys.join("\n") });
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toMatch(/ and 488 more$/);
    expect(warnings[0]?.length).toBeLessThan(1000);
  });

  it("is read through the reader that was handed in", async () => {
    const asked: string[] = [];
    const { config } = await load(
      {},
      {
        readWorkspaceFile: async (path) => {
          asked.push(path);
          return path.includes(".brig") ? { kind: "text", text: 'network = "none"' } : { kind: "absent" };
        },
      },
    );
    expect(asked).toEqual([`${workspace}/.codex/config.toml`, `${workspace}/.brig/config.toml`]);
    expect(config.network).toBe("none");
  });
});

/** What a session may do, as ranks: written down without the rules that are under test. */
function authority(config: Config): Record<string, number | ReadonlySet<string>> {
  const mode = config.sandbox_mode ?? DEFAULT_MODE;
  const isOpen = mode === "workspace-write" && config.sandbox_workspace_write.network_access;
  const network = config.network ?? (mode === "danger-full-access" || isOpen ? "full" : "none");
  const approval = config.approval_policy ?? "on-request";
  const search = config.tools.web_search ?? config.web_search ?? "disabled";
  const isOff = (tool: unknown) => tool === false || tool === "disabled";
  const { web_search: _, ...tools } = config.tools;
  return {
    mode: SANDBOX_MODES.indexOf(mode),
    network: new Set(reachable.filter((host) => reaches(network, host))),
    // Without a person's yes: only what is known to be safe, what the sandbox holds, or anything.
    unattended: approval === "untrusted" ? 0 : approval === "never" ? 2 : 1,
    // With it: nothing more, or all.
    attended: approval === "never" || isGranularThatRefuses(approval) ? 0 : 1,
    questions: new Set(
      typeof approval === "string"
        ? []
        : Object.entries(approval.granular).flatMap(([k, v]) => (v ? [k] : [])),
    ),
    tools: Object.values(tools).filter((tool) => tool !== undefined && !isOff(tool)).length,
    offTools: -Object.values(tools).filter(isOff).length,
    search: ["disabled", "cached", "live"].indexOf(
      typeof search === "string" ? search : search ? "live" : "disabled",
    ),
    login: Number(config.allow_login_shell),
    docBytes: config.project_doc_max_bytes,
    wait: config.background_terminal_max_timeout,
    turn: config.turn_timeout_ms,
    outputTokens: config.tool_output_token_limit ?? Number.POSITIVE_INFINITY,
    lease: config.lease_seconds,
    roots: new Set(config.sandbox_workspace_write.writable_roots),
    variables: new Set(Object.entries(config.shell_environment_policy.set).map(String)),
  };
}

function isGranularThatRefuses(approval: Config["approval_policy"]): boolean {
  return typeof approval === "object" && !approval.granular.sandbox_approval;
}

const reachable = ["a.org", "b.org", "c.org"];

function reaches(network: string, host: string): boolean {
  return network === "full" || (network.startsWith("allowlist:") && network.includes(host));
}

/** What decides who is talked to and what is run on this machine: never a workspace's to say. */
function untouchable(config: Config): object {
  const { model, model_provider, model_providers, openai_base_url, policy, runtime, container_image } =
    config;
  const { instructions, oauth, profile, projects, history, model_instructions_file } = config;
  return {
    ...{ model, model_provider, model_providers, openai_base_url, policy, runtime, container_image },
    ...{ instructions, oauth, profile, projects, history, model_instructions_file },
  };
}

const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });

const anyFile = fc
  .record({
    sandbox_mode: maybe(fc.constantFrom(...SANDBOX_MODES)),
    network: maybe(fc.constantFrom("none", "full", "allowlist:a.org", "allowlist:a.org,b.org")),
    approval_policy: maybe(
      fc.oneof(
        fc.constantFrom("untrusted", "on-failure", "on-request", "never"),
        fc.record({ granular: fc.record({ rules: fc.boolean(), sandbox_approval: fc.boolean() }) }),
      ),
    ),
    sandbox_workspace_write: maybe(
      fc.record({ network_access: fc.boolean(), writable_roots: fc.subarray(["/a", "/b"]) }),
    ),
    tools: maybe(
      fc.record({
        shell: fc.constantFrom("disabled", "local", "unified_exec"),
        js_repl: fc.boolean(),
        apply_patch: fc.constantFrom(true, false, "freeform"),
        web_search: fc.constantFrom(true, false, "cached"),
      }),
    ),
    web_search: maybe(fc.constantFrom("disabled", "cached", "live")),
    allow_login_shell: maybe(fc.boolean()),
    project_doc_max_bytes: maybe(fc.nat(100_000)),
    tool_output_token_limit: maybe(fc.integer({ min: 1, max: 1000 })),
    lease_seconds: maybe(fc.integer({ min: 1, max: 100 })),
    shell_environment_policy: maybe(fc.record({ set: fc.constantFrom({}, { A: "1" }, { A: "2", B: "3" }) })),
    model: maybe(fc.constantFrom("a", "b")),
    runtime: maybe(fc.constantFrom("runc", "runsc")),
    openai_base_url: maybe(fc.constantFrom("http://a.org/v1", "http://b.org/v1")),
  })
  .map((file) => Object.fromEntries(Object.entries(file).filter(([, value]) => value !== undefined)));

it("whatever a workspace's files say, a session may do nothing more than without them", async () => {
  await fc.assert(
    fc.asyncProperty(anyFile, anyFile, anyFile, fc.boolean(), async (own, brig, codex, hasFlag) => {
      const flags: ConfigChoice["flags"] = hasFlag
        ? { sandbox_mode: { flag: "-s", value: "workspace-write" } }
        : {};
      const texts = [stringify(own), stringify(brig), stringify(codex)] as const;
      const plain = await load({ own: texts[0] }, { flags, workspace: undefined });
      const { config } = await load({ own: texts[0], brig: texts[1], codex: texts[2] }, { flags });
      const before = authority(plain.config);
      for (const [what, now] of Object.entries(authority(config))) {
        const earlier = before[what];
        if (typeof now === "number") expect(now, what).toBeLessThanOrEqual(Number(earlier));
        else expect(earlier, what).toEqual(new Set([...(earlier as ReadonlySet<string>), ...now]));
      }
      expect(untouchable(config)).toEqual(untouchable(plain.config));
      // read-only opens no network, so a mode that was tightened to it must not come with one.
      if (config.sandbox_mode === "read-only" && plain.config.sandbox_mode !== "read-only")
        expect(config.network ?? "none").toBe("none");
    }),
    { numRuns: runs({ short: 40, deep: 2000 }) },
  );
});
