import "./jitless.js";
import { resolve } from "node:path";
import type { SandboxSource } from "../../agent/agent-sandbox.js";
import type { Approver } from "../../agent/approvals/approvals.js";
import { asksForProjectDocs } from "../../agent/context/project-docs.js";
import type { ConversationOptions } from "../../agent/conversation-options.js";
import { createThreadId } from "../../agent/thread-id.js";
import { type Config, DEFAULT_MODEL } from "../../config/config-schema.js";
import { connectEngine } from "../../docker/connect.js";
import { probeEngine } from "../../docker/engine-probe.js";
import { createModelClient } from "../../model/create-model-client.js";
import { requestSent } from "../../model/endpoint/request-sent.js";
import type { ResponseItem } from "../../model/items.js";
import { configuredLogin } from "../../model/login/open-login.js";
import type { ModelClient, TokenUsage } from "../../model/model-client.js";
import { profileOf } from "../../model/model-profile.js";
import { resolveProvider } from "../../model/resolve-provider.js";
import { createScriptedClient } from "../../model/script/scripted-client.js";
import { BYTES_PER_TOKEN, type TruncationPolicy } from "../../output/truncation.js";
import type { SandboxMode } from "../../policy/modes.js";
import { missingImage } from "../../sandbox/plan/missing-image.js";
import { refuseUnknownRuntime } from "../../sandbox/plan/unknown-runtime.js";
import type { Sandbox } from "../../sandbox/sandbox.js";
import { withFullAccess } from "../../sandbox/settings/resolve-settings.js";
import type { SandboxSettings } from "../../sandbox/settings/sandbox-settings.js";
import type { SentContext, SessionSetting } from "../../session/setting.js";
import { noSessionLog, openSessionFile, type SessionLog } from "../../session/write/session-file.js";
import type { AskedUser } from "../../tools/session/request-user-input.js";
import { readVersion } from "../../version.js";
import type { CliContext } from "../context.js";
import { say } from "../render.js";
import type { AgentFlags } from "./agent-flags.js";
import {
  type ContextPlace,
  configuredCompaction,
  configuredContext,
  configuredInstructions,
} from "./context-settings.js";
import { keptNote, openSandbox } from "./open-sandbox.js";
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
   * What the items last told the model about where and how it works; null if nothing they say still applies.
   */
  sentContext: SentContext | null;
  /** The model of the last request; null if unknown. */
  model: { provider: string; name: string } | null;
  /** The sum over all requests so far. */
  usage: TokenUsage;
  turns: number;
  /** Appends to the session's file. */
  log: SessionLog;
}

/** What the caller decides about a session, besides the flags. */
export interface AgentUse {
  hasManyTurns: boolean;
  /** Answers the model's questions. Default: nobody. */
  user?: AskedUser | undefined;
  /** Answers requests for approval. Default: nobody. */
  approver?: Approver | undefined;
  /** Default: a new session. */
  earlier?: EarlierSession | undefined;
}

export interface AgentSetup extends Pick<RunSettings, "config" | "sources" | "setting"> {
  threadId: string;
  /** For `openConversation`. The caller adds a listener. */
  options: ConversationOptions;
  /** The same run in another mode. The sandbox starts when its source is called. */
  inMode(mode: SandboxMode): Promise<{ setting: SessionSetting; sandbox: SandboxSource }>;
}

/** Errors: those of `resolveRun` and `checkEngine`, and those of opening the model. */
export async function prepareAgent(
  flags: AgentFlags,
  context: CliContext,
  use: AgentUse,
): Promise<AgentSetup> {
  const { environment, cwd } = context;
  const run = await resolveRun(flags, context, {
    usualApproval: use.hasManyTurns ? "on-request" : "never",
  });
  const { config, sandbox, setting } = run;
  // A conversation needs no check: it starts its container before the first request and shows the error
  // there. The engine may come back while the conversation lasts.
  const engineCheck = use.hasManyTurns ? Promise.resolve() : checkEngine(sandbox);
  engineCheck.catch(() => undefined);
  const threadId = use.earlier?.threadId ?? createThreadId(new Date());
  const model = await openModel(flags, { config, context, threadId, use });
  const outputSchema =
    flags.outputSchema === undefined
      ? undefined
      : await readOutputSchema(resolve(cwd, flags.outputSchema), context.signal);
  const contextOptions = configuredContext(config, { environment, cwd: workplaceOf(sandbox, flags) });
  const asksAtOnce =
    !use.hasManyTurns &&
    flags.script === undefined &&
    !(await asksForProjectDocs({ ...contextOptions.projectDocs, cwd: setting.cwd }));
  const instructions = await chosenInstructions(flags, config, { context, use });
  await engineCheck;
  const open = () => openRunSandbox(sandbox, context);
  return {
    config,
    sources: run.sources,
    threadId,
    setting,
    options: {
      model,
      sandbox: asksAtOnce ? afterRequest(open) : open,
      setting,
      truncation: configuredTruncation(config, model.model),
      toolOptions: {
        allowsLoginShell: config.allow_login_shell,
        maxPollMs: config.background_terminal_max_timeout,
        gates: configuredGates(config, { hasFullAccess: setting.sandboxMode === "danger-full-access" }),
        user: use.user,
      },
      approver: use.approver,
      escalatedSandbox: async () => await openRunSandbox(await withFullAccess(sandbox), context),
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
      recordsTree: flags.treeRecord !== false,
    },
    async inMode(mode) {
      const other = await inMode(run, mode);
      return { setting: other.setting, sandbox: () => openRunSandbox(other.sandbox, context) };
    },
  };
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

async function openRunSandbox(settings: SandboxSettings, context: CliContext): Promise<Sandbox> {
  const sandbox = await openSandbox(() => settings, context);
  if (settings.keep) await say(context.stderr, keptNote(sandbox));
  return sandbox;
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

async function openRecord(
  threadId: string,
  about: { flags: AgentFlags; config: Config; context: CliContext; use: AgentUse },
): Promise<SessionLog> {
  const { flags, config, context, use } = about;
  if (flags.ephemeral === true || config.history?.persistence === "none") return noSessionLog;
  const { brigHome: home } = context.environment;
  return use.earlier?.log ?? (await openSessionFile({ home, threadId, now: () => new Date() }));
}

async function openModel(
  flags: AgentFlags,
  about: { config: Config; context: CliContext; threadId: string; use: AgentUse },
): Promise<ModelClient> {
  const { config, context, threadId, use } = about;
  if (flags.script !== undefined) {
    const { hasManyTurns } = use;
    // Imported here, because only scripts need a YAML parser.
    const { loadScript } = await import("../../model/script/script.js");
    return createScriptedClient(await loadScript(resolve(context.cwd, flags.script), { hasManyTurns }));
  }
  const provider = resolveProvider(config, context.environment, {
    login: await configuredLogin(config, context.environment),
  });
  // A resumed session keeps its model if the provider is the same.
  const before = use.earlier?.model;
  const model = before?.provider === provider.id ? before.name : undefined;
  return createModelClient({
    provider,
    model: flags.model ?? model ?? config.model ?? DEFAULT_MODEL,
    threadId,
    userAgent: `brig/${readVersion()}`,
    originator: flags.caller?.originator,
    settings: {
      reasons: config.model_supports_reasoning_summaries,
      reasoningEffort: config.model_reasoning_effort,
      reasoningSummary: config.model_reasoning_summary,
      verbosity: config.model_verbosity,
      serviceTier: config.service_tier,
    },
  });
}

/** `tool_output_token_limit` is in tokens, but some models' output limits are in bytes. */
function configuredTruncation(
  { tool_output_token_limit: tokens }: Config,
  model: string,
): TruncationPolicy | undefined {
  if (tokens === undefined) return undefined;
  return profileOf(model).truncation.mode === "tokens"
    ? { mode: "tokens", limit: tokens }
    : { mode: "bytes", limit: tokens * BYTES_PER_TOKEN };
}

/** Loading what talks to the engine blocks the process for half of a container's start: the request goes first. */
function afterRequest(open: () => Promise<Sandbox>): () => Promise<Sandbox> {
  return async () => {
    await requestSent({ withinMs: REQUEST_PATIENCE_MS });
    return await open();
  };
}
