import { resolve } from "node:path";
import type { AgentModelChoice, Config, ModelClient } from "../../agent/index.js";
import { configuredLogin, createModelClient, createScriptedClient, DEFAULT_MODEL, resolveProvider } from "../../agent/index.js";
import { readVersion } from "../../version.js";
import type { CliContext } from "../context.js";
import type { AgentFlags } from "../setup/agent-flags.js";

interface ModelSource {
  config: Config;
  context: CliContext;
  threadId: string;
  /** The model that a resumed session has used; null or undefined for any other session. */
  before: { provider: string; name: string } | null | undefined;
}

/** The model of a session, and a function that opens the models of its agents. */
interface SessionModels {
  model: ModelClient;
  openAgentModel(choice: AgentModelChoice): Promise<ModelClient>;
}

export async function openModels(
  flags: AgentFlags,
  source: ModelSource & { hasManyTurns: boolean },
): Promise<SessionModels> {
  if (flags.script !== undefined) return await scriptedModels(flags.script, source);
  return {
    model: await openModel(flags, source),
    async openAgentModel({ threadId, model, reasoningEffort }) {
      const { config } = source;
      const effort = reasoningEffort ?? config.model_reasoning_effort;
      const own = { ...source, threadId, config: { ...config, model_reasoning_effort: effort } };
      return await openModel({ ...flags, model }, own);
    },
  };
}

/** Reading scripts is loaded here, on demand, because only scripts need a YAML parser. */
async function scriptedModels(
  file: string,
  { context, threadId, hasManyTurns }: ModelSource & { hasManyTurns: boolean },
): Promise<SessionModels> {
  const [{ loadScript }, { scriptedAgentModels }] = await Promise.all([import("../../agent/index.js"), import("./scripted-agent-models.js")]);
  const script = await loadScript(resolve(context.cwd, file), { hasManyTurns });
  return {
    model: createScriptedClient(script),
    openAgentModel: scriptedAgentModels(script, { threadId }),
  };
}

/** Opens a model at the endpoint of the configured provider. */
export async function openModel(
  flags: AgentFlags,
  { config, context, threadId, before }: ModelSource,
): Promise<ModelClient> {
  const provider = resolveProvider(config, context.environment, {
    login: await configuredLogin(config, context.environment),
  });
  // A resumed session keeps its model if the provider is the same.
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
