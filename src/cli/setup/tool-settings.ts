import type { Config, LoadedConfig } from "../../agent/index.js";
import { configuredWireApi, describeSource, functionGates, profileOf } from "../../agent/index.js";
import type { GateLayer, ToolGates } from "../../tools/index.js";
import { defaultGates, mergeGates, noAgents, nobodyToAsk, noForks, noMcpServers } from "../../tools/index.js";
import type { CliContext } from "../context.js";

type ConfiguredValues = Pick<LoadedConfig, "config" | "sources">;

/** With full access the model may use the network anyway, so a cached search becomes a live one. */
export function configuredGates(config: Config, { hasFullAccess = false } = {}): ToolGates {
  const { web_search: own, ...tools } = config.tools ?? {};
  const asked = typeof own === "boolean" ? (own ? "live" : "disabled") : own;
  const web_search = asked ?? config.web_search;
  const { multi_agent } = config.features;
  return {
    ...exploreGates(config),
    ...setOnes({ multi_agent }),
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
export function gateLayers(
  configured: ConfiguredValues,
  { model, context }: { model: string; context: CliContext },
): GateLayer[] {
  const layers = [
    defaultGates,
    { source: `model ${model}`, gates: profileOf(model).tools },
    ...configuredLayers(configured),
    ...(canAsk(context) ? [] : [nobodyToAsk]),
    ...(hasServers(configured.config) ? [] : [noMcpServers]),
    ...(configured.config.agents.max_depth > 0 ? [noForks] : [noAgentLevels]),
  ];
  return configuredWireApi(configured.config) === "chat"
    ? [...layers, functionGates(mergeGates(layers))]
    : layers;
}

const noAgentLevels: GateLayer = { ...noAgents, source: "agents.max_depth = 0" };

function hasServers({ mcp_servers: servers }: Config): boolean {
  return Object.values(servers).some(({ enabled }) => enabled);
}

function configuredLayers({ config, sources }: ConfiguredValues): GateLayer[] {
  return Object.entries(configuredGates(config))
    .filter(([, setting]) => setting !== undefined)
    .map(([key, setting]) => {
      const list = exploreTools.some((name) => name === key)
        ? "experimental_supported_tools"
        : key === "multi_agent"
          ? "features.multi_agent"
          : key;
      const source = sources.get(`tools.${key}`) ?? sources.get(list) ?? { kind: "default" };
      return { source: describeSource(source), gates: { [key]: setting } };
    });
}

/** Whether a person at a terminal can see a question and type an answer. */
export function canAsk({ stdin, stderr }: CliContext): boolean {
  return stdin.isTTY === true && stderr.isTTY === true;
}
