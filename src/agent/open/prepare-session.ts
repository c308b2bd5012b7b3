import { BrigError } from "../../errors.js";
import type { Sandbox, SandboxMode, SandboxSettings } from "../../sandbox/index.js";
import {
  connectEngine,
  describeNetwork,
  holdTree,
  missingImage,
  probeEngine,
  refuseUnknownRuntime,
  withFullAccess,
  withReadOnly,
} from "../../sandbox/index.js";
import type { Elicit } from "../../tools/index.js";
import type { AgentSandbox, SandboxSource } from "../agent-sandbox.js";
import type { Config } from "../config/config-schema.js";
import { asksForProjectDocs } from "../context/project-docs.js";
import type { ConversationOptions, ModelChange } from "../conversation-options.js";
import { requestSent } from "../model/endpoint/request-sent.js";
import type { ResponseItem } from "../model/items.js";
import type { ModelClient } from "../model/model-client.js";
import { isKnownProvider } from "../model/resolve-provider.js";
import type { SessionSetting } from "../session/setting.js";
import { noSessionLog, openSessionFile, type SessionLog } from "../session/write/session-file.js";
import { createThreadId } from "../thread-id.js";
import type { AgentSettings, SessionHost, SessionSettings } from "./agent-settings.js";
import {
  type ContextPlace,
  configuredAgents,
  configuredCompaction,
  configuredContext,
  configuredGates,
  configuredInstructions,
  configuredTruncation,
} from "./configured-options.js";
import type { EarlierSession } from "./earlier-session.js";
import { elicitFrom } from "./elicit-by-questions.js";
import { type ModelSource, openModel, openModels, openProvider } from "./open-models.js";
import { rememberingIn } from "./remembered-hosts.js";
import { describePolicy, inMode, type RunSettings, resolveRun } from "./run-settings.js";
import { sessionSandboxes, withSessionWorkspace, workspaceStart } from "./session-workspace.js";
import { workspaceBranch } from "./workspace-branch.js";

/** How long to wait for the engine to say whether it has the image. */
const PROBE_MS = 1000;

/** A request that takes longer to be sent is waiting for something else. */
const REQUEST_PATIENCE_MS = 250;

/** A session whose conversation can be opened: nothing has started yet, except that its file is locked. */
export interface PreparedSession extends Pick<RunSettings, "config" | "sources" | "setting"> {
  /** For `openConversation`. The caller adds a listener. */
  options: ConversationOptions & { threadId: string };
  /** The same run in another mode. The sandbox starts when its source is called. */
  inMode(mode: SandboxMode): Promise<{ setting: SessionSetting; sandbox: SandboxSource }>;
  /**
   * A second place for the same files, in which nothing can change them: what the mode read-only allows. Error: `usage.invalid` where
   * only the session's own sandbox has the files.
   */
  readOnly(): Promise<{ setting: SessionSetting; open(): Promise<AgentSandbox> }>;
  /** Other models for the session. Null with a script, which is no real model. */
  otherModels: OtherModels | null;
}

export interface OtherModels {
  /** Opens one, for `changeModel`. The session's agents get the same provider and effort. */
  open(choice: ModelChoice): Promise<ModelChange>;
  /** The names of the models that an endpoint has. Null if it does not say. */
  list(choice: Pick<ModelChoice, "provider">, signal: AbortSignal): Promise<readonly string[] | null>;
}

export interface ModelChoice {
  model: string;
  /** Default: the session's. */
  provider?: string | undefined;
  /** Undefined means the model's own default. */
  reasoningEffort: string | undefined;
}

/** Errors: those of `resolveRun` and `checkEngine`, and those of opening the model. */
export async function prepareSession(settings: SessionSettings, host: SessionHost): Promise<PreparedSession> {
  const { environment, user, approver, warn } = host;
  const { earlier, hasManyTurns, script, outputSchema, within } = settings;
  const earlierWorkspace = within === undefined ? (earlier?.workspace ?? null) : null;
  const run = await resolveRun(await withSessionWorkspace(settings, earlierWorkspace, host), host, {
    usualApproval: hasManyTurns ? "on-request" : "never",
    beginsSession: earlier === undefined,
  });
  const { sandbox, setting } = run;
  const config = await withChosenModel(run, settings, host);
  await host.onConfig?.(config);
  const isOverlay = config.workspace_kind === "overlay" && sandbox.workspace !== null;
  const { from, loss } = await workspaceStart(earlierWorkspace, sandbox, { isOverlay, warn });
  const threadId = earlier?.threadId ?? createThreadId(new Date());
  const openRunSandbox = sessionSandboxes({ from, threadId }, host);
  // A conversation needs no check: it starts its container before the first request and shows the error
  // there. The engine may come back while the conversation lasts.
  const engineCheck = hasManyTurns || within !== undefined ? Promise.resolve() : checkEngine(sandbox);
  engineCheck.catch(() => undefined);
  const mcpServers = await openerOf(run, host, { ...settings, waitsForSandbox: from !== null });
  const models = { config, environment, threadId, hasManyTurns, before: earlier?.model };
  const { model, openAgentModel } = await openModels(settings, models);
  const branch = sandbox.workspace === null ? null : workspaceBranch(sandbox.workspace);
  const contextOptions = configuredContext(config, { environment, cwd: workplaceOf(sandbox, settings) });
  const asksAtOnce =
    !hasManyTurns &&
    within === undefined &&
    script === undefined &&
    mcpServers === undefined &&
    !(await asksForProjectDocs({ ...contextOptions.projectDocs, cwd: setting.cwd }));
  const instructions = await chosenInstructions(settings, config);
  await engineCheck;
  const open = within?.open ?? (() => openRunSandbox(sandbox));
  const gates = configuredGates(config, { hasFullAccess: setting.sandboxMode === "danger-full-access" });
  const inOtherMode: PreparedSession["inMode"] = async (mode) => {
    if (within !== undefined) throw fixedMode(within.name);
    const other = await inMode(run, mode);
    return { setting: other.setting, sandbox: () => openRunSandbox(other.sandbox) };
  };
  return {
    config,
    sources: run.sources,
    setting,
    options: {
      model,
      sandbox: asksAtOnce ? afterRequest(open) : open,
      setup: earlier === undefined || earlier.wasNotSetUp ? sessionSetup(sandbox, settings) : undefined,
      setting,
      truncation: configuredTruncation(config, model.model),
      toolOptions: {
        allowsLoginShell: config.allow_login_shell,
        maxPollMs: config.background_terminal_max_timeout,
        gates,
        user,
        elicit: elicitOf(setting, host),
      },
      mcpServers,
      approver,
      escalatedSandbox:
        within === undefined ? async () => await openRunSandbox(await withFullAccess(sandbox)) : undefined,
      agents: await configuredAgents(config, {
        gates,
        openModel: openAgentModel,
        canFork: isOverlay,
        home: keepsRecords(settings, config) ? environment.brigHome : undefined,
        inMode: (mode) => inOtherMode(mode as SandboxMode),
      }),
      rememberHost: rememberingIn(sandbox),
      onClose: holdTree(sandbox),
      outputSchema,
      instructions,
      context: contextOptions,
      compaction: configuredCompaction(config),
      turnTimeoutMs: config.turn_timeout_ms,
      session: await openRecord(threadId, settings, { config, environment }),
      threadId,
      initialItems: earlier === undefined ? undefined : itemsFor(model, earlier),
      sentContext: earlier?.sentContext,
      earlierUse: earlier,
      workspaceLoss: loss ?? undefined,
      branch: (await branch) ?? undefined,
      recordsTree: settings.recordsTree !== false,
    },
    inMode: inOtherMode,
    async readOnly() {
      if (within?.hasOwnFiles === true || sandbox.workspace === null) throw ownFiles(within);
      const other = await withReadOnly(sandbox);
      return { setting: { ...setting, ...describePolicy(other) }, open: () => openRunSandbox(other) };
    },
    otherModels: script !== undefined ? null : otherModels(settings, models),
  };
}

function otherModels(settings: SessionSettings, models: ModelSource): OtherModels {
  const configured = models.config;
  const providerOf = (provider = configured.model_provider) => ({ ...configured, model_provider: provider });
  return {
    async open({ model, provider, reasoningEffort }) {
      const config = { ...providerOf(provider), model_reasoning_effort: reasoningEffort };
      const opened = await openModel({ ...settings, model }, { ...models, config, before: null });
      models.config = config;
      return { model: opened, truncation: configuredTruncation(config, model) };
    },
    async list({ provider }, signal) {
      const { listModels } = await import("../model/endpoint/list-models.js");
      return await listModels(await openProvider(providerOf(provider), models.environment), signal);
    },
  };
}

/**
 * A resumed session goes on with the model that was chosen in the middle of it, unless the settings name a model or a
 * provider.
 */
async function withChosenModel(
  { config, sources }: RunSettings,
  { earlier, profile }: SessionSettings,
  { warn }: SessionHost,
): Promise<Config> {
  const before = earlier?.model;
  const isSet = (key: string) => {
    const kind = sources.get(key)?.kind;
    return kind === "override" || kind === "flag" || (kind === "profile" && profile !== undefined);
  };
  if (!before?.isChosen || isSet("model") || isSet("model_provider")) return config;
  if (!isKnownProvider(before.provider, config)) {
    const what = `the session's model provider \`${before.provider}\` is not configured any more`;
    await warn(`${what}, so it goes on with the model of the configuration`);
    return config;
  }
  const effort = isSet("model_reasoning_effort") ? config.model_reasoning_effort : before.effort;
  return { ...config, model_provider: before.provider, model_reasoning_effort: effort ?? undefined };
}

/** The code is loaded only if there is one. */
function sessionSetup(
  { setup }: SandboxSettings,
  { directory: cwd }: AgentSettings,
): ConversationOptions["setup"] {
  if (setup === undefined) return undefined;
  const { argv, network } = setup;
  return {
    argv,
    network: describeNetwork(network),
    async run(sandbox, { signal, onOutput }) {
      const { runSetup, setupFailure } = await import("../../sandbox/index.js");
      const ended = await runSetup(sandbox as Sandbox, { cwd, signal, onOutput });
      return { ...ended, error: setupFailure(ended) };
    },
  };
}

/** Answers questions of MCP servers, unless nobody can be asked or a granular approval policy forbids it. */
function elicitOf({ approvalPolicy }: SessionSetting, { user }: SessionHost): Elicit | undefined {
  const isRefused = typeof approvalPolicy === "object" && !approvalPolicy.granular.mcp_elicitations;
  return user === undefined || isRefused ? undefined : elicitFrom(user);
}

/** The code for MCP servers is loaded only if some are configured. */
async function openerOf(
  run: RunSettings,
  host: SessionHost,
  { mcpServers: further = {}, waitsForSandbox }: SessionSettings & { waitsForSandbox: boolean },
): Promise<ConversationOptions["mcpServers"]> {
  const isNeeded = Object.keys({ ...run.config.mcp_servers, ...further }).length > 0;
  if (!isNeeded) return undefined;
  const { serverOpener } = await import("../mcp/configured-servers.js");
  return (await serverOpener(run, host, { further, waitsForSandbox })) ?? undefined;
}

/**
 * Asks the engine whether it has the image and the runtime, so that nobody pays for a request whose tool
 * calls could not run. Errors: `image.missing`, `usage.invalid`, `engine.unreachable`.
 */
async function checkEngine({ image, runtime, environment: env }: SandboxSettings): Promise<void> {
  const needsRuntimes = runtime !== undefined;
  const probe = await probeEngine({ env, image, needsRuntimes, withinMs: PROBE_MS });
  // A real connection attempt has the better error message.
  if (probe.kind === "silent") await connectEngine({ env });
  if (probe.kind !== "answered") return;
  refuseUnknownRuntime(runtime, probe);
  if (!probe.hasImage) throw missingImage(image);
}

function fixedMode(name: string): BrigError {
  return new BrigError(`the session works in the sandbox ${name}, whose mode cannot change`, {
    code: "usage.invalid",
    hint: "start another one with brig up -s MODE, or leave out --in",
  });
}

function ownFiles(within: AgentSettings["within"]): BrigError {
  const owner = within === undefined ? "the session's sandbox" : `the sandbox ${within.name}`;
  return new BrigError(
    `only ${owner} has its files, so nobody can look at them without being able to change them`,
    {
      code: "usage.invalid",
      hint: "ask the model in words of your own, or review a workspace of this machine with brig review",
    },
  );
}

/** A resumed session keeps its instructions, unless the settings replace them. */
async function chosenInstructions(
  { instructions, instructionsFile: file, earlier }: SessionSettings,
  config: Config,
): Promise<string | undefined> {
  const chosen = instructions ?? (file === undefined ? earlier?.instructions : undefined);
  return chosen ?? (await configuredInstructions(config, { file }));
}

function workplaceOf(
  { workspace }: SandboxSettings,
  { directory, within }: AgentSettings,
): ContextPlace["cwd"] {
  if (within !== undefined) return "image";
  if (workspace !== null) return "host";
  return directory === undefined ? "none" : "image";
}

/** Reasoning items are encrypted by their provider, and another provider refuses them. */
function itemsFor({ provider }: ModelClient, { items, model }: EarlierSession): readonly ResponseItem[] {
  return model?.provider === provider ? items : items.filter(({ type }) => type !== "reasoning");
}

function keepsRecords({ isEphemeral }: AgentSettings, { history }: Config): boolean {
  return isEphemeral !== true && history?.persistence !== "none";
}

async function openRecord(
  threadId: string,
  settings: SessionSettings,
  { config, environment }: { config: Config; environment: SessionHost["environment"] },
): Promise<SessionLog> {
  if (!keepsRecords(settings, config)) return noSessionLog;
  const { brigHome: home } = environment;
  return settings.earlier?.log ?? (await openSessionFile({ home, threadId, now: () => new Date() }));
}

/**
 * Sends the first request to the model before the sandbox is opened: loading the code that talks to the
 * engine blocks the process for half as long as a container takes to start.
 */
function afterRequest(open: () => Promise<AgentSandbox>): () => Promise<AgentSandbox> {
  return async () => {
    await requestSent({ withinMs: REQUEST_PATIENCE_MS });
    return await open();
  };
}
