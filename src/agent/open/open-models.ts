import type { Environment } from "../../lib/env.js";
import { readVersion } from "../../version.js";
import type { AgentModelChoice } from "../agents/agents-options.js";
import { type Config, DEFAULT_MODEL } from "../config/config-schema.js";
import { createModelClient } from "../model/create-model-client.js";
import { configuredLogin } from "../model/login/open-login.js";
import type { ModelClient } from "../model/model-client.js";
import type { ModelProvider } from "../model/provider.js";
import { resolveProvider } from "../model/resolve-provider.js";
import type { Script } from "../model/script/script.js";
import { createScriptedClient } from "../model/script/scripted-client.js";
import type { AgentSettings } from "./agent-settings.js";

/** The model that the configuration names is used where no other is chosen. */
type ModelChoice = Pick<AgentSettings, "model" | "originator">;

export interface ModelSource {
  /** Read anew for each model of an agent. */
  config: Config;
  environment: Environment;
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
  choice: ModelChoice & Pick<AgentSettings, "script">,
  source: ModelSource & { hasManyTurns: boolean },
): Promise<SessionModels> {
  if (choice.script !== undefined) return await scriptedModels(choice.script, source);
  return {
    model: await openModel(choice, source),
    async openAgentModel({ threadId, model, reasoningEffort }) {
      const { config } = source;
      const effort = reasoningEffort ?? config.model_reasoning_effort;
      const own = { ...source, threadId, config: { ...config, model_reasoning_effort: effort } };
      return await openModel({ ...choice, model }, own);
    },
  };
}

/** Reading scripts is loaded here, on demand, because only scripts need a YAML parser. */
async function scriptedModels(
  file: string,
  { threadId, hasManyTurns }: ModelSource & { hasManyTurns: boolean },
): Promise<SessionModels> {
  const { loadScript } = await import("../model/script/script.js");
  const script = await loadScript(file, { hasManyTurns });
  return {
    model: createScriptedClient(script),
    openAgentModel: scriptedAgentModels(script, { threadId }),
  };
}

/** Gives each agent the next script from the `agents` list of the script that its parent plays. */
export function scriptedAgentModels(
  script: Script,
  { threadId }: { threadId: string },
): (choice: AgentModelChoice) => Promise<ModelClient> {
  const scripts = new Map([[threadId, { script, next: 0 }]]);
  const clients = new Map<string, ModelClient>();
  return ({ threadId: id, parentId }) => {
    const known = clients.get(id);
    if (known !== undefined) return Promise.resolve(known);
    const parent = scripts.get(parentId);
    const own = parent?.script.agents?.[parent.next] ?? { file: script.file, steps: [] };
    if (parent !== undefined) parent.next++;
    scripts.set(id, { script: own, next: 0 });
    const client = createScriptedClient(own);
    clients.set(id, client);
    return Promise.resolve(client);
  };
}

/** The configured provider, with its key or login. */
export async function openProvider(config: Config, environment: Environment): Promise<ModelProvider> {
  return resolveProvider(config, environment, { login: await configuredLogin(config, environment) });
}

/** Opens a model at the endpoint of the configured provider. */
export async function openModel(
  choice: ModelChoice,
  { config, environment, threadId, before }: ModelSource,
): Promise<ModelClient> {
  const provider = await openProvider(config, environment);
  // A resumed session keeps its model if the provider is the same.
  const model = before?.provider === provider.id ? before.name : undefined;
  return createModelClient({
    provider,
    model: choice.model ?? model ?? config.model ?? DEFAULT_MODEL,
    threadId,
    userAgent: `brig/${readVersion()}`,
    originator: choice.originator,
    settings: {
      reasons: config.model_supports_reasoning_summaries,
      reasoningEffort: config.model_reasoning_effort,
      reasoningSummary: config.model_reasoning_summary,
      verbosity: config.model_verbosity,
      serviceTier: config.service_tier,
    },
  });
}
