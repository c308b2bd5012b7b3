import type { Config } from "../config/config-schema.js";
import { loadConfig } from "../config/load-config.js";
import { profileOf } from "../model/model-profile.js";
import type { GateLayer, ToolGates } from "../tools/tool-gates.js";
import { defaultGates, nobodyToAsk } from "../tools/tool-gates.js";
import type { CliContext } from "./context.js";

export const DEFAULT_MODEL = "gpt-5.2-codex";

/** The model that is asked: the flag's, else the configuration's. */
export async function chosenModel(
  choice: {
    model?: string | undefined;
    profile?: string | undefined;
    overrides?: readonly string[] | undefined;
  },
  { environment }: CliContext,
): Promise<string> {
  const { config } = await loadConfig(environment, choice);
  return choice.model ?? config.model ?? DEFAULT_MODEL;
}

/** What a configuration says about tools. With full access there is nothing to keep a search away from. */
export function configuredGates(config: Config, { hasFullAccess = false } = {}): ToolGates {
  const { web_search: own, ...tools } = config.tools ?? {};
  const asked = typeof own === "boolean" ? (own ? "live" : "disabled") : own;
  const web_search = asked ?? config.web_search;
  return { ...tools, web_search: hasFullAccess && web_search === "cached" ? "live" : web_search };
}

/** Everything that decides about tools, weakest first. */
export async function gateLayers(
  choice: { model: string; profile?: string | undefined; overrides?: readonly string[] | undefined },
  context: CliContext,
): Promise<GateLayer[]> {
  const { model, profile, overrides } = choice;
  const file = await loadConfig(context.environment, { profile });
  const all = await loadConfig(context.environment, { profile, overrides });
  const fromFile = configuredGates(file.config);
  return [
    defaultGates,
    { source: `model ${model}`, gates: profileOf(model).tools },
    { source: "configuration", gates: fromFile },
    { source: "-c", gates: difference(configuredGates(all.config), fromFile) },
    ...(canAsk(context) ? [] : [nobodyToAsk]),
  ];
}

/** Whether there is a person at a terminal to see a question and type an answer. */
export function canAsk({ stdin, stderr }: CliContext): boolean {
  return stdin.isTTY === true && stderr.isTTY === true;
}

function difference(gates: ToolGates, other: ToolGates): ToolGates {
  const same = Object.entries(other);
  return Object.fromEntries(
    Object.entries(gates).filter(
      ([key, value]) => !same.some(([name, setting]) => name === key && setting === value),
    ),
  );
}
