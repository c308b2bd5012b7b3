import { resolve } from "node:path";
import type { Approver, Config, ConversationOptions, McpServerInput, ModelClient, RecordedWorkspace, ResponseItem, SandboxSource, SentContext, SessionLog, SessionSetting, TokenUsage } from "../../agent/index.js";
import { asksForProjectDocs, createThreadId, noSessionLog, openSessionFile, requestSent } from "../../agent/index.js";
import type { Sandbox, SandboxMode, SandboxSettings } from "../../sandbox/index.js";
import { connectEngine, describeNetwork, holdTree, missingImage, probeEngine, refuseUnknownRuntime, withFullAccess } from "../../sandbox/index.js";
import type { AskedUser, Elicit } from "../../tools/index.js";
import { configuredAgents } from "../agents/configured-agents.js";
import { openModel, openModels } from "../agents/open-models.js";
import type { CliContext } from "../context.js";
import { rememberingIn } from "../egress/remembered-hosts.js";
import { elicitFrom } from "../questions/elicit-by-questions.js";
import { withSessionWorkspace, workspaceStart } from "../steps/resumed-workspace.js";
import { sessionSandboxes } from "../steps/session-sandboxes.js";
import type { AgentFlags } from "./agent-flags.js";
import {
  type ContextPlace,
  configuredCompaction,
  configuredContext,
  configuredInstructions,
  configuredTruncation,
} from "./context-settings.js";
import { readOutputSchema } from "./run-input.js";
import { inMode, type RunSettings, resolveRun } from "./run-settings.js";
import { commandDirectory, type SandboxFlags } from "./sandbox-flags.js";
import { configuredGates } from "./tool-settings.js";

/** How long to wait for the engine to say whether it has the image. */
const PROBE_MS = 1000;

/** A request that takes longer to be sent is waiting for something else. */
const REQUEST_PATIENCE_MS = 250;

export interface EarlierSession {
  threadId: string;
  items: readonly ResponseItem[];
  /** Null if unknown. */
  instructions: string | null;
  /**
   * The last description of its surroundings that the model got in the items; null if none of it still applies.
   */
  sentContext: SentContext | null;
  /** The session's copy-on-write workspace; null if its workspace was of another kind. */
  workspace: RecordedWorkspace | null;
  /** The model of the last request; null if unknown. */
  model: { provider: string; name: string } | null;
  /** The tokens of all requests so far. */
  usage: TokenUsage;
  turns: number;
  /** Whether its set-up was tried in vain, so that nothing has run after it. */
  wasNotSetUp: boolean;
  /** Appends to the session's file. */
  log: SessionLog;
}

/** The caller's decisions about a session, besides the flags. */
export interface AgentUse {
  hasManyTurns: boolean;
  /** Answers the model's questions. Default: nobody. */
  user?: AskedUser | undefined;
  /** Answers requests for approval. Default: nobody. */
  approver?: Approver | undefined;
  /** MCP servers besides those of the configuration, with the keys of config.toml. */
  mcpServers?: Readonly<Record<string, McpServerInput>> | undefined;
  /** Default: a new session. */
  earlier?: EarlierSession | undefined;
}

export interface AgentSetup extends Pick<RunSettings, "config" | "sources" | "setting"> {
  threadId: string;
  /** For `openConversation`. The caller adds a listener. */
  options: ConversationOptions;
  /** The same run in another mode. The sandbox starts when its source is called. */
  inMode(mode: SandboxMode): Promise<{ setting: SessionSetting; sandbox: SandboxSource }>;
  /** Opens another model of the same provider. Null with `--script`, which is no real model. */
  withModel: ((choice: ModelChoice) => Promise<ModelClient>) | null;
}

interface ModelChoice {
  model: string;
  /** Undefined means the model's own default. */
  reasoningEffort: string | undefined;
}

/** Errors: those of `resolveRun` and `checkEngine`, and those of opening the model. */
export async function prepareAgent(
  flags: AgentFlags,
  context: CliContext,
  use: AgentUse,
): Promise<AgentSetup> {
  const { environment, cwd } = context;
  const earlierWorkspace = use.earlier?.workspace ?? null;
  const run = await resolveRun(await withSessionWorkspace(flags, earlierWorkspace, context), context, {
    usualApproval: use.hasManyTurns ? "on-request" : "never",
    beginsSession: use.earlier === undefined,
  });
  const { config, sandbox, setting } = run;
  const isOverlay = config.workspace_kind === "overlay" && sandbox.workspace !== null;
  const { stderr } = context;
  const { from, loss } = await workspaceStart(earlierWorkspace, sandbox, { isOverlay, stderr });
  const threadId = use.earlier?.threadId ?? createThreadId(new Date());
  const openRunSandbox = sessionSandboxes({ from, threadId, publish: flags.publish }, context);
  // A conversation needs no check: it starts its container before the first request and shows the error
  // there. The engine may come back while the conversation lasts.
  const engineCheck = use.hasManyTurns ? Promise.resolve() : checkEngine(sandbox);
  engineCheck.catch(() => undefined);
  const mcpServers = await openerOf(run, context, { ...use, waitsForSandbox: from !== null });
  const models = { config, context, threadId, hasManyTurns: use.hasManyTurns, before: use.earlier?.model };
  const { model, openAgentModel } = await openModels(flags, models);
  const outputSchema =
    flags.outputSchema === undefined
      ? undefined
      : await readOutputSchema(resolve(cwd, flags.outputSchema), context.signal, context);
  const contextOptions = configuredContext(config, { environment, cwd: workplaceOf(sandbox, flags) });
  const asksAtOnce =
    !use.hasManyTurns &&
    flags.script === undefined &&
    mcpServers === undefined &&
    !(await asksForProjectDocs({ ...contextOptions.projectDocs, cwd: setting.cwd }));
  const instructions = await chosenInstructions(flags, config, { context, use });
  await engineCheck;
  const open = () => openRunSandbox(sandbox);
  const gates = configuredGates(config, { hasFullAccess: setting.sandboxMode === "danger-full-access" });
  const inOtherMode: AgentSetup["inMode"] = async (mode) => {
    const other = await inMode(run, mode);
    return { setting: other.setting, sandbox: () => openRunSandbox(other.sandbox) };
  };
  return {
    config,
    sources: run.sources,
    threadId,
    setting,
    options: {
      model,
      sandbox: asksAtOnce ? afterRequest(open) : open,
      setup: use.earlier === undefined || use.earlier.wasNotSetUp ? sessionSetup(sandbox, flags) : undefined,
      setting,
      truncation: configuredTruncation(config, model.model),
      toolOptions: {
        allowsLoginShell: config.allow_login_shell,
        maxPollMs: config.background_terminal_max_timeout,
        gates,
        user: use.user,
        elicit: elicitOf(setting, use),
      },
      mcpServers,
      approver: use.approver,
      escalatedSandbox: async () => await openRunSandbox(await withFullAccess(sandbox)),
      agents: await configuredAgents(config, {
        gates,
        openModel: openAgentModel,
        canFork: isOverlay,
        home: keepsRecords(flags, config) ? environment.brigHome : undefined,
        inMode: (mode) => inOtherMode(mode as SandboxMode),
      }),
      rememberHost: rememberingIn(sandbox),
      onClose: holdTree(sandbox),
      outputSchema,
      instructions,
      context: contextOptions,
      compaction: configuredCompaction(config),
      turnTimeoutMs: config.turn_timeout_ms,
      session: await openRecord(threadId, { flags, config, context, use }),
      threadId,
      initialItems: use.earlier === undefined ? undefined : itemsFor(model, use.earlier),
      sentContext: use.earlier?.sentContext,
      earlierUse: use.earlier,
      workspaceLoss: loss ?? undefined,
      recordsTree: flags.treeRecord !== false,
    },
    inMode: inOtherMode,
    withModel:
      flags.script !== undefined
        ? null
        : async ({ model: name, reasoningEffort }) => {
            const chosen = { ...config, model_reasoning_effort: reasoningEffort };
            return await openModel({ ...flags, model: name }, { ...models, config: chosen });
          },
  };
}

/** The code is loaded only if there is one. */
function sessionSetup({ setup }: SandboxSettings, flags: SandboxFlags): ConversationOptions["setup"] {
  if (setup === undefined) return undefined;
  const { argv, network } = setup;
  return {
    argv,
    network: describeNetwork(network),
    async run(sandbox, { signal, onOutput }) {
      const { runSetup, setupFailure } = await import("../../sandbox/index.js");
      const ended = await runSetup(sandbox as Sandbox, {
        ...{ cwd: commandDirectory(flags), signal, onOutput },
      });
      return { ...ended, error: setupFailure(ended) };
    },
  };
}

/** Answers questions of MCP servers, unless nobody can be asked or a granular approval policy forbids it. */
function elicitOf({ approvalPolicy }: SessionSetting, { user }: AgentUse): Elicit | undefined {
  const isRefused = typeof approvalPolicy === "object" && !approvalPolicy.granular.mcp_elicitations;
  return user === undefined || isRefused ? undefined : elicitFrom(user);
}

/** The code for MCP servers is loaded only if some are configured. */
async function openerOf(
  run: RunSettings,
  context: CliContext,
  { mcpServers: further = {}, waitsForSandbox }: AgentUse & { waitsForSandbox: boolean },
): Promise<ConversationOptions["mcpServers"]> {
  const isNeeded = Object.keys({ ...run.config.mcp_servers, ...further }).length > 0;
  if (!isNeeded) return undefined;
  const { serverOpener } = await import("../mcp/session-servers.js");
  return (await serverOpener(run, context, { further, waitsForSandbox })) ?? undefined;
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

/** A resumed session keeps its instructions, unless a flag replaces them. */
async function chosenInstructions(
  { instructionsFile }: AgentFlags,
  config: Config,
  { context, use }: { context: CliContext; use: AgentUse },
): Promise<string | undefined> {
  const file = instructionsFile === undefined ? undefined : resolve(context.cwd, instructionsFile);
  const earlier = file === undefined ? use.earlier?.instructions : undefined;
  return earlier ?? (await configuredInstructions(config, { file }));
}

function workplaceOf({ workspace }: SandboxSettings, flags: SandboxFlags): ContextPlace["cwd"] {
  if (workspace !== null) return "host";
  return commandDirectory(flags) === undefined ? "none" : "image";
}

/** Reasoning items are encrypted by their provider, and another provider refuses them. */
function itemsFor({ provider }: ModelClient, { items, model }: EarlierSession): readonly ResponseItem[] {
  return model?.provider === provider ? items : items.filter(({ type }) => type !== "reasoning");
}

function keepsRecords({ ephemeral }: AgentFlags, { history }: Config): boolean {
  return ephemeral !== true && history?.persistence !== "none";
}

async function openRecord(
  threadId: string,
  about: { flags: AgentFlags; config: Config; context: CliContext; use: AgentUse },
): Promise<SessionLog> {
  const { flags, config, context, use } = about;
  if (!keepsRecords(flags, config)) return noSessionLog;
  const { brigHome: home } = context.environment;
  return use.earlier?.log ?? (await openSessionFile({ home, threadId, now: () => new Date() }));
}

/**
 * Sends the first request to the model before the sandbox is opened: loading the code that talks to the
 * engine blocks the process for half as long as a container takes to start.
 */
function afterRequest(open: () => Promise<Sandbox>): () => Promise<Sandbox> {
  return async () => {
    await requestSent({ withinMs: REQUEST_PATIENCE_MS });
    return await open();
  };
}
