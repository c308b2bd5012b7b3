import { resolve } from "node:path";
import type { Config, LoadedConfig, SessionSetting } from "../../agent/index.js";
import { commandVariables, loadConfig } from "../../agent/index.js";
import type { ApprovalPolicy, EgressSettings, PolicyChoice, SandboxMode, SandboxSettings, UnresolvedSettings } from "../../sandbox/index.js";
import { checkedSettings, DEFAULT_MODE, loadChosenPolicy, resolvedSetup, resolveSettings } from "../../sandbox/index.js";
import { isBrigError } from "../../errors.js";
import { neutralise } from "../../lib/terminal/terminal.js";
import type { CliContext } from "../context.js";
import { withProjectHosts } from "../egress/remembered-hosts.js";
import { say } from "../render.js";
import { type AgentFlags, type CallerDefaults, configuredFlags } from "./agent-flags.js";
import { configChoice } from "./config-choice.js";
import { commandDirectory, flaggedSettings } from "./sandbox-flags.js";

/**
 * The settings of a run, from flags, configuration and policy. Each file is read once, so that the policy
 * described to the model is the one that the sandbox starts with, even if the file changes in between.
 */
export interface RunSettings extends Pick<LoadedConfig, "config" | "sources"> {
  sandbox: SandboxSettings;
  /** The description of the sandbox for the model. */
  setting: SessionSetting;
}

/**
 * Prints warnings to stderr, and also notes when a session begins. Errors: `config.invalid`, and those errors of a sandbox
 * that can be found without an engine.
 */
export async function resolveRun(
  flags: AgentFlags,
  context: CliContext,
  { usualApproval, beginsSession }: { usualApproval: ApprovalPolicy; beginsSession: boolean },
): Promise<RunSettings> {
  const { environment, stderr } = context;
  // The flags are read first, so that the error for a wrong one names the flag rather than its key in the configuration.
  const flagged = flaggedSettings(flags, context);
  const {
    config: configured,
    sources,
    warnings,
    notes,
  } = await loadConfig(environment, {
    ...configChoice(flags, context),
    ignoresUserFile: flags.caller?.ignoresUserConfig,
    approvalPolicy: usualApproval,
    ...(flags.workspace === "none" ? { workspace: undefined } : {}),
    flags: configuredFlags({ ...flags, policy: flagged.policyFile }),
  });
  for (const sentence of [...warnings, ...(beginsSession ? notes : [])])
    await say(stderr, `brig: ${neutralise(sentence)}\n`);
  const config = withUsualMode(configured, flags.caller);
  const resolved = await resolveSettings(withConfiguration(flagged, config, context));
  const settings =
    flags.caller?.toleratesAddDirs === true ? await withUsableDirectories(resolved, context) : resolved;
  const sandbox = await withProjectHosts(await checkedSettings(settings));
  return {
    config,
    sources,
    sandbox,
    setting: {
      cwd: sandbox.workspace ?? commandDirectory(flags) ?? "/",
      ...describePolicy(sandbox),
      approvalPolicy: config.approval_policy ?? usualApproval,
      shell: "bash",
      timezone: environment.timezone,
    },
  };
}

/** As in Codex, directories that the policy cannot make writable are left out with a warning. */
async function withUsableDirectories(
  settings: SandboxSettings,
  { stderr }: CliContext,
): Promise<SandboxSettings> {
  const {
    addDirs,
    policy: { name, policy },
  } = settings;
  if (addDirs.length === 0 || policy.overrides.writableRoots) return settings;
  const hint = "use --sandbox workspace-write for commands to write there";
  const warning = `--add-dir has no effect under the policy ${name} (${addDirs.join(", ")}); ${hint}`;
  await say(stderr, `brig: ${neutralise(warning)}\n`);
  return { ...settings, addDirs: [] };
}

/** The same run in another mode. Errors: those of `resolveRun` about the sandbox. */
export async function inMode(run: RunSettings, mode: SandboxMode): Promise<RunSettings> {
  const config = { ...run.config, sandbox_mode: mode, policy: undefined };
  const choice = configuredPolicy(config);
  const policy = await loadChosenPolicy({
    ...choice,
    user: mode === "danger-full-access" ? undefined : run.sandbox.user,
  });
  // A session is set up once, so the set-up has most likely run already. If the new mode would not permit it, the user is
  // told only if it still has to run.
  const setup = await resolvedSetup({ ...choice, setup: setupChoice(config) }, policy).catch(
    (error: unknown) => {
      if (isBrigError(error, "usage.invalid")) return undefined;
      throw error;
    },
  );
  const sandbox = await withProjectHosts(await checkedSettings({ ...run.sandbox, policy, setup }));
  return { ...run, config, sandbox, setting: { ...run.setting, ...describePolicy(sandbox) } };
}

function withUsualMode(config: Config, { mode }: CallerDefaults = {}): Config {
  const isChosen = config.sandbox_mode !== undefined || config.policy !== undefined;
  return isChosen || mode === undefined ? config : { ...config, sandbox_mode: mode };
}

/** The flags that have a key are already part of the configuration. */
function withConfiguration(
  flagged: UnresolvedSettings,
  config: Config,
  { cwd }: CliContext,
): UnresolvedSettings {
  return {
    ...flagged,
    ...configuredPolicy(config),
    workspaceKind: flagged.workspaceKind === "none" ? "none" : config.workspace_kind,
    git: flagged.workspace === null ? flagged.git : config.git,
    image: config.container_image,
    runtime: config.runtime,
    writableRoots: config.sandbox_workspace_write.writable_roots.map((root) => resolve(cwd, root)),
    leaseSeconds: config.lease_seconds,
    configuredEgress: config.egress as EgressSettings | undefined,
    setup: setupChoice(config),
    env: { ...commandVariables(config), ...flagged.env },
  };
}

function setupChoice({
  setup: { command, network, timeout_ms: timeoutMs },
}: Config): UnresolvedSettings["setup"] {
  return command.length === 0 ? undefined : { command, network, timeoutMs };
}

function configuredPolicy(config: Config): PolicyChoice {
  const { policy: policyFile, sandbox_mode: mode, sandbox_workspace_write: workspaceWrite } = config;
  const isWorkspaceWrite = policyFile === undefined && (mode ?? DEFAULT_MODE) === "workspace-write";
  const opensNetwork = isWorkspaceWrite && workspaceWrite.network_access;
  return { mode, policyFile, network: config.network ?? (opensNetwork ? "full" : undefined) };
}

function describePolicy({
  policy: { name, policy },
  addDirs,
  writableRoots,
}: SandboxSettings): Pick<SessionSetting, "sandboxMode" | "network" | "writableRoots"> {
  return {
    sandboxMode: name,
    network: policy.network,
    writableRoots: [...addDirs, ...(policy.overrides.writableRoots ? writableRoots : [])],
  };
}
