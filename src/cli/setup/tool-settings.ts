import { functionGates } from "../../agent/function-gates.js";
import { type Config, DEFAULT_MODEL } from "../../config/config-schema.js";
import { type LoadedConfig, loadConfig } from "../../config/settings/load-config.js";
import { describeSource } from "../../config/settings/sources.js";
import { profileOf } from "../../model/model-profile.js";
import { configuredWireApi } from "../../model/resolve-provider.js";
import type { GateLayer, ToolGates } from "../../tools/tool-gates.js";
import { defaultGates, mergeGates, nobodyToAsk } from "../../tools/tool-gates.js";
import type { CliContext } from "../context.js";
import { configChoice } from "./config-choice.js";

/** The model and the configuration that decide which tools are on. */
interface ToolsChoice {
  model?: string | undefined;
  profile?: string | undefined;
  overrides?: readonly string[] | undefined;
  /** `-C`. */
  cd?: string | undefined;
}

/** The flag's model, else the configuration's, else the default. */
export async function chosenModel(choice: ToolsChoice, context: CliContext): Promise<string> {
  const { config } = await load(choice, context);
  return choice.model ?? config.model ?? DEFAULT_MODEL;
}

/** With full access the model may use the network anyway, so a cached search becomes a live one. */
export function configuredGates(config: Config, { hasFullAccess = false } = {}): ToolGates {
  const { web_search: own, ...tools } = config.tools ?? {};
  const asked = typeof own === "boolean" ? (own ? "live" : "disabled") : own;
  const web_search = asked ?? config.web_search;
  return {
    ...exploreGates(config),
    ...setOnes(tools),
    web_search: hasFullAccess && web_search === "cached" ? "live" : web_search,
  };
}

const exploreTools = ["read_file", "list_dir", "grep_files"] as const;

/** Codex's list of the exploration tools that are on. The `tools` table overrides it. */
function exploreGates({ experimental_supported_tools: offered }: Config): ToolGates {
  if (offered === undefined) return {};
  return Object.fromEntries(exploreTools.map((name) => [name, offered.includes(name)]));
}

function setOnes<Settings extends object>(settings: Settings): Partial<Settings> {
  return Object.fromEntries(
    Object.entries(settings).filter(([, setting]) => setting !== undefined),
  ) as Partial<Settings>;
}

/** Every source of tool settings, weakest first. */
export async function gateLayers(
  choice: ToolsChoice & { model: string },
  context: CliContext,
): Promise<GateLayer[]> {
  const loaded = await load(choice, context);
  const layers = [
    defaultGates,
    { source: `model ${choice.model}`, gates: profileOf(choice.model).tools },
    ...configuredLayers(loaded),
    ...(canAsk(context) ? [] : [nobodyToAsk]),
  ];
  return configuredWireApi(loaded.config) === "chat"
    ? [...layers, functionGates(mergeGates(layers))]
    : layers;
}

async function load({ profile, overrides, cd }: ToolsChoice, context: CliContext): Promise<LoadedConfig> {
  return await loadConfig(context.environment, configChoice({ profile, config: overrides, cd }, context));
}

/** One layer for each setting, named after its source. */
function configuredLayers({ config, sources }: LoadedConfig): GateLayer[] {
  return Object.entries(configuredGates(config))
    .filter(([, setting]) => setting !== undefined)
    .map(([key, setting]) => {
      const list = exploreTools.some((name) => name === key) ? "experimental_supported_tools" : key;
      const source = sources.get(`tools.${key}`) ?? sources.get(list) ?? { kind: "default" };
      return { source: describeSource(source), gates: { [key]: setting } };
    });
}

/** Whether a person at a terminal can see a question and type an answer. */
export function canAsk({ stdin, stderr }: CliContext): boolean {
  return stdin.isTTY === true && stderr.isTTY === true;
}
