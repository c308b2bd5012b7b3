import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import type { Config } from "../agent/index.js";
import {
  costOfRequest,
  createScriptedClient,
  DEFAULT_MODEL,
  loadScript,
  openModel,
  priceOfModel,
} from "../agent/index.js";
import type { AttemptAgent, BatchSettings, CostOf } from "../batch/index.js";
import { cheatAgentNamed, commandAgent, modelAgent, nopAgent, oracleAgent } from "../batch/index.js";
import { invalidUsage } from "../errors.js";
import { neutraliseLine } from "../lib/terminal/terminal.js";
import type { CliContext } from "./context.js";
import { say } from "./render.js";

/** The flags that choose the agent of attempts. */
export interface AttemptFlags {
  agent: string;
  model?: string | undefined;
  maxCost?: number | undefined;
  maxTotalCost?: number | undefined;
}

export interface ChosenAgent {
  agent: AttemptAgent;
  /** Further settings that decide what the agent does, recorded with the run. */
  options: BatchSettings["agent"]["options"];
}

interface AgentSource {
  config: Config;
  context: CliContext;
}

/** The agent that `--agent` names. Errors: `usage.invalid`, and `config.invalid` for a script or the configuration. */
export async function chosenAgent(flags: AttemptFlags, source: AgentSource): Promise<ChosenAgent> {
  const { context } = source;
  const [, kind = "", argument] = /^([a-z]+)(?::(.+))?$/s.exec(flags.agent) ?? [];
  if (kind === "oracle" && argument === undefined) return { agent: oracleAgent(), options: {} };
  if (kind === "nop" && argument === undefined) return { agent: nopAgent(), options: {} };
  if (kind === "cheat") return { agent: cheatAgentNamed(flags.agent), options: {} };
  if (kind === "model" && argument === undefined) return await configuredAgent(flags, source);
  if (kind === "scripted" && argument !== undefined)
    return await scriptedAgent(resolve(context.cwd, argument));
  if (kind === "command" && argument !== undefined)
    return { agent: commandAgent(argument), options: { command: argument } };
  throw invalidUsage(
    `there is no agent ${JSON.stringify(flags.agent)}`,
    "use model, oracle, nop, cheat:ATTACK, scripted:FILE or command:COMMAND",
  );
}

async function configuredAgent(flags: AttemptFlags, { config, context }: AgentSource): Promise<ChosenAgent> {
  const model = flags.model ?? config.model ?? DEFAULT_MODEL;
  const costOf = await knownCosts(model, { flags, config, context });
  const open = async (threadId: string) =>
    await openModel({ model }, { config, environment: context.environment, threadId, before: null });
  return {
    agent: modelAgent({ name: "model", model, openModel: open, costOf }),
    options: {
      provider: config.model_provider ?? "openai",
      reasoningEffort: config.model_reasoning_effort ?? null,
    },
  };
}

/** Says once that costs are unknown. Error: `usage.invalid` for a limit of them, which would never be reached. */
async function knownCosts(
  model: string,
  { flags, config, context }: AgentSource & { flags: AttemptFlags },
): Promise<CostOf> {
  const price = priceOfModel(model, config.prices);
  if (price !== null) return (usage) => (usage === null ? null : costOfRequest(price, usage));
  const hint = `give it in config.toml under [prices.${JSON.stringify(model)}]: input, cached_input and output, in US dollars for a million tokens`;
  if (flags.maxCost !== undefined || flags.maxTotalCost !== undefined)
    throw invalidUsage(
      `the cost of the model ${model} cannot be limited, because brig does not know its price`,
      `${hint}; or limit tokens with --max-tokens or --max-total-tokens`,
    );
  const note = `brig: no price of the model ${model} is known, so costs are not either; ${hint}`;
  await say(context.stderr, `${neutraliseLine(note)}\n`);
  return () => null;
}

async function scriptedAgent(file: string): Promise<ChosenAgent> {
  const script = await loadScript(file);
  const checksum = createHash("sha256")
    .update(await readFile(file))
    .digest("hex");
  const openScripted = async () => createScriptedClient(script);
  return {
    agent: modelAgent({ name: "scripted", model: "scripted", openModel: openScripted, costOf: () => 0 }),
    options: { script: checksum },
  };
}
