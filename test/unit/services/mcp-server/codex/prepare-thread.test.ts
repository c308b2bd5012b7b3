import { mkdirSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import type { AgentFlags } from "../../../../../src/command/flags/agent-flags.js";
import { agentSettings, sessionHost } from "../../../../../src/command/flags/agent-settings.js";
import { prepareThread } from "../../../../../src/services/mcp-server/codex/prepare-thread.js";
import type { CallSettings } from "../../../../../src/services/mcp-server/codex/tool-arguments.js";
import { testContext } from "../../../../support/cli-context.js";
import { temporaryDirectory } from "../../../../support/sandbox.js";

let root: string;

beforeEach(async () => {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory[Symbol.asyncDispose]());
  root = realpathSync(directory.path);
  for (const name of ["home", "own", "theirs", "more"]) mkdirSync(join(root, name));
  writeFileSync(join(root, "script.yaml"), JSON.stringify({ steps: [{ text: "done" }] }));
});

/** What a server that was started with these flags prepares for a call. */
async function begun(call: CallSettings, flags: AgentFlags = {}) {
  const variables = { HOME: join(root, "home") };
  const context = { ...testContext({ variables }), cwd: root };
  const own = await agentSettings({ script: "script.yaml", ephemeral: true, cd: "own", ...flags }, context);
  const server = { settings: own, host: sessionHost(context) };
  return await prepareThread({ kind: "begin", settings: call }, {}, server);
}

describe("a session that a client begins", () => {
  it("has the settings of the call", async () => {
    const prepared = await begun({
      cwd: "theirs",
      sandbox: "read-only",
      "approval-policy": "untrusted",
      "base-instructions": "be brief",
      "developer-instructions": 'say "hello"\n',
      "compact-prompt": "shorter",
      "include-plan-tool": false,
      "tools-web-search-request": true,
      config: { "tools.view_image": false, turn_timeout_ms: 5000, include_environment_context: false },
    });
    expect(prepared).toMatchObject({
      setting: { cwd: join(root, "theirs"), sandboxMode: "read-only", approvalPolicy: "untrusted" },
      instructions: "be brief",
      context: { developerInstructions: 'say "hello"\n', includesEnvironment: false },
      compaction: { prompt: "shorter" },
      toolOptions: { gates: { update_plan: false, view_image: false, web_search: "live" } },
      turnTimeoutMs: 5000,
    });
  });

  it("has those of the server where the call says nothing, and the call's where both say something", async () => {
    const flags: AgentFlags = {
      sandbox: "read-only",
      askForApproval: "untrusted",
      config: ["turn_timeout_ms=1000", "tools.view_image=false", "allow_login_shell=false"],
    };
    expect(await begun({}, flags)).toMatchObject({
      setting: { cwd: join(root, "own"), sandboxMode: "read-only", approvalPolicy: "untrusted" },
      toolOptions: { allowsLoginShell: false, gates: { view_image: false } },
      turnTimeoutMs: 1000,
    });
    const both = await begun({ sandbox: "workspace-write", config: { turn_timeout_ms: 2000 } }, flags);
    expect(both).toMatchObject({
      setting: { sandboxMode: "workspace-write" },
      toolOptions: { allowsLoginShell: false },
      turnTimeoutMs: 2000,
    });
  });

  it("has a flag of the server rather than the same key in the call's config", async () => {
    const config = { approval_policy: "never", sandbox_mode: "read-only" };
    expect(
      await begun({ config }, { askForApproval: "untrusted", sandbox: "workspace-write" }),
    ).toMatchObject({
      setting: { sandboxMode: "workspace-write", approvalPolicy: "untrusted" },
    });
  });

  it("takes relative paths from where the server was started", async () => {
    const { setting } = await begun({ config: { sandbox_workspace_write: { writable_roots: ["more"] } } });
    expect(setting.writableRoots).toEqual([join(root, "more")]);
  });

  it("leaves a policy file of the server for the mode that the call names", async () => {
    await expect(begun({}, { policy: "missing.toml" })).rejects.toMatchObject({ code: "policy.invalid" });
    expect(await begun({ sandbox: "read-only" }, { policy: "missing.toml" })).toMatchObject({
      setting: { sandboxMode: "read-only" },
    });
  });

  it.each([
    [{ sandbox_mode: 3 }, "config.invalid"],
    [{ network: "full" }, "usage.invalid"],
    [{ model: null }, "usage.invalid"],
  ])("is refused with the config %j", async (config, code) => {
    await expect(begun({ config })).rejects.toMatchObject({ code });
  });
});
