import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import type { AgentSandbox } from "../../src/agent/agent-sandbox.js";
import { type PreparedSession, prepareSession } from "../../src/agent/open/prepare-session.js";
import { agentSettings, sessionHost } from "../../src/command/flags/agent-settings.js";
import { readEnvironment } from "../../src/lib/env.js";
import { policyDirectory } from "../../src/sandbox/policy/policy-directory.js";
import { Sandbox } from "../../src/sandbox/sandbox.js";
import { testContext } from "../support/cli-context.js";
import { testRuntime } from "../support/runtime-differences.js";
import { temporaryDirectory } from "../support/sandbox.js";

/** A policy of the test's own, with a name that only it protects. */
const kept = "kept-by-this-policy";

async function prepared({ config = "" } = {}) {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory[Symbol.asyncDispose]());
  const [home, workspace, policy, script] = ["home", "work", "policy.toml", "script.yaml"].map((name) =>
    join(directory.path, name),
  ) as [string, string, string, string];
  await mkdir(join(workspace, kept), { recursive: true });
  const text = await readFile(join(policyDirectory, "workspace-write.toml"), "utf8");
  await writeFile(policy, text.replace('[".git"', `["${kept}", ".git"`));
  await mkdir(home);
  await writeFile(join(home, "config.toml"), config);
  await writeFile(script, JSON.stringify({ steps: [{ text: "done" }] }));
  const context = {
    ...testContext(),
    environment: readEnvironment({ ...process.env, BRIG_HOME: home, CODEX_HOME: home }),
  };
  const flags = { policy, script, cd: workspace, runtime: testRuntime, ephemeral: true };
  const settings = await agentSettings(flags, context);
  const setup = await prepareSession({ ...settings, hasManyTurns: false }, sessionHost(context));
  return { setup, policy, workspace };
}

async function opened(source: PreparedSession["options"]["sandbox"] | undefined): Promise<Sandbox> {
  if (typeof source !== "function") throw new Error("the sandbox is started by the caller");
  const sandbox: AgentSandbox = await source();
  if (!(sandbox instanceof Sandbox)) throw new Error("not a sandbox of the engine");
  onTestFinished(async () => void (await sandbox.close()));
  return sandbox;
}

const makeFile = (sandbox: Sandbox, workspace: string) =>
  sandbox.exec(["touch", join(workspace, kept, "new")]);

describe("a policy file that changes after the model was told of it", () => {
  it("does not change the sandbox that starts", async () => {
    const { setup, policy, workspace } = await prepared();
    const loosened = (await readFile(policy, "utf8"))
      .replace('network = "none"', 'network = "full"')
      .replace(`"${kept}", `, "");
    await writeFile(policy, loosened);
    const sandbox = await opened(setup.options.sandbox);
    expect(setup.setting).toMatchObject({ sandboxMode: policy, network: { kind: "none" } });
    expect((await sandbox.exec(["ls", "/sys/class/net"])).stdout).not.toContain("eth");
    expect((await makeFile(sandbox, workspace)).exitCode).not.toBe(0);
  });

  it("nor does it keep a sandbox from starting, or full access from protecting the same names", async () => {
    const { setup, policy, workspace } = await prepared();
    await rm(policy);
    expect((await (await opened(setup.options.sandbox)).exec(["true"])).exitCode).toBe(0);
    const escalated = await opened(setup.options.escalatedSandbox);
    expect((await makeFile(escalated, workspace)).exitCode).not.toBe(0);
    expect((await escalated.exec(["touch", join(workspace, "new")])).exitCode).toBe(0);
  });
});

describe("another mode of the same run", () => {
  it("is described as it starts", async () => {
    const { setup, policy, workspace } = await prepared();
    await rm(policy);
    const { setting, sandbox: source } = await setup.inMode("read-only");
    expect(setting).toMatchObject({ cwd: workspace, sandboxMode: "read-only", network: { kind: "none" } });
    const sandbox = await opened(source);
    expect((await sandbox.exec(["touch", join(workspace, "new")])).exitCode).not.toBe(0);
  });
});

describe("the set-up of a run in another mode", () => {
  const config = '[setup]\ncommand = ["touch", "set-up"]\nnetwork = "allowlist:a.example"\n';
  const running = { signal: new AbortController().signal, onOutput: () => undefined };

  it("runs there with its network, if the mode permits that", async () => {
    const { setup, workspace } = await prepared({ config });
    const { sandbox: source } = await setup.inMode("workspace-write");
    const sandbox = await opened(source);
    expect(await setup.options.setup?.run(sandbox, running)).toMatchObject({ exitCode: 0, error: null });
    expect((await sandbox.exec(["ls", join(workspace, "set-up")])).exitCode).toBe(0);
  });

  it.each(["read-only", "danger-full-access"] as const)(
    "keeps nobody from changing to %s, which does not, and says so only when it is still to run",
    async (mode) => {
      const { setup, workspace } = await prepared({ config });
      const { setting, sandbox: source } = await setup.inMode(mode);
      expect(setting.sandboxMode).toBe(mode);
      const sandbox = await opened(source);
      await expect(setup.options.setup?.run(sandbox, running)).rejects.toMatchObject({
        code: "usage.invalid",
        message: `the policy ${mode} does not let the set-up have its network`,
      });
      expect((await sandbox.exec(["ls", join(workspace, "set-up")])).exitCode).not.toBe(0);
    },
  );
});
