import type { Command } from "commander";
import { DEFAULT_MODEL, loadConfig } from "../../agent/index.js";
import type { CliContext } from "../../command/index.js";
import {
  addConfigOptions,
  type ConfigFlags,
  configChoice,
  say,
  writeJson,
  writeTable,
} from "../../command/index.js";
import type { GateLayer } from "../../tools/index.js";
import { explainGate } from "../../tools/index.js";
import { toolCatalogue } from "../setup/tool-catalogue.js";
import { gateLayers } from "../setup/tool-settings.js";

interface ToolsFlags extends ConfigFlags {
  json?: boolean;
  model?: string;
}

export function defineTools(command: Command, context: CliContext): void {
  addConfigOptions(command.option("-m, --model <name>", "the model (default: from the configuration)"))
    .option("-C, --cd <dir>", "the workspace (default: the current directory)")
    .option("--json", "print the tools as JSON")
    .action(async (flags: ToolsFlags) => {
      const loaded = await loadConfig(context.environment, configChoice(flags, context));
      const model = flags.model ?? loaded.config.model ?? DEFAULT_MODEL;
      const tools = describeTools(gateLayers(loaded, { model, context }));
      if (flags.json === true) return await writeJson(context.stdout, tools);
      const rows = tools.map(({ name, isOn, why, supportsParallel }) => [
        name,
        isOn ? "on" : "off",
        supportsParallel ? "yes" : "no",
        why,
      ]);
      await writeTable(context.stdout, [["TOOL", "STATE", "PARALLEL", "WHY"], ...rows]);
      const servers = Object.entries(loaded.config.mcp_servers).filter(([, { enabled }]) => enabled);
      if (servers.length === 0) return;
      const names = servers.map(([name]) => name).join(", ");
      await say(context.stdout, `and the tools of the MCP servers ${names}: brig mcp list --check\n`);
    });
}

interface ToolDescription {
  name: string;
  isOn: boolean;
  /** The setting that decides, and where it comes from. */
  why: string;
  supportsParallel: boolean;
  description: string;
}

function describeTools(layers: readonly GateLayer[]): ToolDescription[] {
  return toolCatalogue()
    .getAll()
    .map(({ name, supportsParallel, description }) => ({
      name,
      ...explainGate(name, layers),
      supportsParallel,
      description,
    }));
}
