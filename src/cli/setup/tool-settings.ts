import type { Config, LoadedConfig } from "../../agent/index.js";
import {
  configuredGates,
  configuredWireApi,
  describeSource,
  exploreTools,
  functionGates,
  profileOf,
} from "../../agent/index.js";
import type { CliContext } from "../../command/index.js";
import type { GateLayer } from "../../tools/index.js";
import { defaultGates, mergeGates, noAgents, nobodyToAsk, noForks, noMcpServers } from "../../tools/index.js";

type ConfiguredValues = Pick<LoadedConfig, "config" | "sources">;

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
