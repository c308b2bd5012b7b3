import { resolve } from "node:path";
import { isBrigError } from "../../errors.js";
import type {
  ApprovalPolicy,
  EgressSettings,
  PolicyChoice,
  SandboxMode,
  SandboxSettings,
  UnresolvedSettings,
} from "../../sandbox/index.js";
import {
  checkedSettings,
  DEFAULT_MODE,
  loadChosenPolicy,
  resolvedSetup,
  resolveSettings,
} from "../../sandbox/index.js";
import type { Config } from "../config/config-schema.js";
import { type ConfigChoice, type LoadedConfig, loadConfig } from "../config/settings/load-config.js";
import { commandVariables } from "../config/shell-environment.js";
import type { SessionSetting } from "../session/setting.js";
import type { AgentSettings, SessionHost } from "./agent-settings.js";
import { withProjectHosts } from "./remembered-hosts.js";

/**
 * The settings of a run: the caller's, completed from configuration and policy. Each file is read once, so that the policy
 * described to the model is the one that the sandbox starts with, even if the file changes in between.
 */
export interface RunSettings extends Pick<LoadedConfig, "config" | "sources"> {
  sandbox: SandboxSettings;
  /** The description of the sandbox for the model. */
  setting: SessionSetting;
}

type RunHost = Pick<SessionHost, "environment" | "cwd" | "warn">;

/**
 * Tells the user warnings, and also notes when a session begins. Errors: `config.invalid`, and those errors of a sandbox
 * that can be found without an engine.
 */
export async function resolveRun(
  settings: AgentSettings,
  host: RunHost,
  { usualApproval, beginsSession }: { usualApproval: ApprovalPolicy; beginsSession: boolean },
): Promise<RunSettings> {
  const { environment, cwd, warn } = host;
  const { profile, overrides, ignoresUserFile } = settings;
  const {
    config: configured,
    sources,
    warnings,
    notes,
  } = await loadConfig(environment, {
    profile,
    overrides,
    ignoresUserFile,
    cwd,
    workspace: settings.sandbox.workspace ?? undefined,
    approvalPolicy: usualApproval,
    flags: chosenKeys(settings),
  });
  for (const sentence of [...warnings, ...(beginsSession ? notes : [])]) await warn(sentence);
  const config = withFlaggedSetup(withUsualMode(configured, settings), settings);
  const resolved = await resolveSettings(withConfiguration(settings, config, host));
  const usable = settings.toleratesAddDirs === true ? await withUsableDirectories(resolved, host) : resolved;
  const { within } = settings;
  const sandbox = within === undefined ? await withProjectHosts(await checkedSettings(usable)) : usable;
  return {
    config,
    sources,
    sandbox,
    setting: {
      cwd: sandbox.workspace ?? settings.directory ?? "/",
      ...describePolicy(sandbox),
      approvalPolicy: config.approval_policy ?? usualApproval,
      shell: "bash",
      timezone: environment.timezone,
      ...within?.setting,
    },
  };
}

/** As in Codex, directories that the policy cannot make writable are left out with a warning. */
async function withUsableDirectories(settings: SandboxSettings, { warn }: RunHost): Promise<SandboxSettings> {
  const {
    addDirs,
    policy: { name, policy },
  } = settings;
  if (addDirs.length === 0 || policy.overrides.writableRoots) return settings;
  const hint = "use --sandbox workspace-write for commands to write there";
  await warn(`--add-dir has no effect under the policy ${name} (${addDirs.join(", ")}); ${hint}`);
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

function withUsualMode(config: Config, { usualMode }: AgentSettings): Config {
  const isChosen = config.sandbox_mode !== undefined || config.policy !== undefined;
  return isChosen || usualMode === undefined ? config : { ...config, sandbox_mode: usualMode };
}

/** Nothing of a set-up that the configuration names is left, since its network is for its own command. */
function withFlaggedSetup(config: Config, { sandbox: { setup } }: AgentSettings): Config {
  if (setup === undefined) return config;
  const { command, network } = setup;
  return { ...config, setup: { ...config.setup, command: [...command], network } };
}

/** The settings that have a key of the configuration, and the flags that errors and lists of sources name for them. */
function chosenKeys({ model, approvalPolicy, sandbox }: AgentSettings): ConfigChoice["flags"] {
  return {
    model: { flag: "--model", value: model },
    approval_policy: { flag: "--ask-for-approval", value: approvalPolicy },
    sandbox_mode: { flag: "--sandbox", value: sandbox.mode },
    policy: { flag: "--policy", value: sandbox.policyFile },
    network: { flag: "--network", value: sandbox.network },
    container_image: { flag: "--container-image", value: sandbox.image },
    runtime: { flag: "--runtime", value: sandbox.runtime },
    // A run without a workspace ignores the kind that the configuration names.
    workspace_kind: {
      flag: "--workspace",
      value: sandbox.workspaceKind === "none" ? undefined : sandbox.workspaceKind,
    },
    git: { flag: "--git", value: sandbox.git },
  };
}

/** The settings that have a key are already part of the configuration. */
function withConfiguration(
  { sandbox, within }: AgentSettings,
  config: Config,
  { environment, cwd }: RunHost,
): UnresolvedSettings {
  const isOpen = within !== undefined;
  return {
    ...sandbox,
    environment,
    ...configuredPolicy(config),
    workspaceKind: sandbox.workspaceKind === "none" ? "none" : config.workspace_kind,
    git: sandbox.workspace === null ? sandbox.git : config.git,
    image: config.container_image,
    runtime: config.runtime,
    writableRoots: config.sandbox_workspace_write.writable_roots.map((root) => resolve(cwd, root)),
    leaseSeconds: config.lease_seconds,
    // A sandbox that is open was set up, and has the secrets that it was given.
    configuredEgress: isOpen ? undefined : (config.egress as EgressSettings | undefined),
    setup: isOpen ? undefined : setupChoice(config),
    env: { ...commandVariables(config), ...sandbox.env },
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

/** What a model is told of a sandbox with these settings. */
export function describePolicy({
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
