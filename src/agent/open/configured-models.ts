import { z } from "zod";
import { type Config, DEFAULT_MODEL } from "../config/config-schema.js";
import { openaiModels } from "../model/prices/list-prices.js";
import { isKnownProvider } from "../model/resolve-provider.js";

/** A model that a person may want, and where it is known from. */
export interface ConfiguredModel {
  model: string;
  provider: string;
  effort: string | undefined;
  source: string;
}

const profileKeys = z.looseObject({
  model: z.string().min(1),
  model_provider: z.string().optional().catch(undefined),
  model_reasoning_effort: z.string().optional().catch(undefined),
});

/** The models that the configuration names, and those of OpenAI that brig knows where that is the provider. */
export function configuredModels(config: Config): ConfiguredModel[] {
  const provider = config.model_provider ?? "openai";
  const usual = { provider, effort: config.model_reasoning_effort };
  const named = config.model === undefined ? [] : [{ ...usual, model: config.model, source: "config.toml" }];
  const ofProfiles = Object.entries(config.profiles).flatMap(([name, profile]) => {
    const { data } = profileKeys.safeParse(profile);
    if (data === undefined) return [];
    const { model, model_provider: own = provider, model_reasoning_effort: effort } = data;
    return isKnownProvider(own, config) ? [{ model, provider: own, effort, source: `profile ${name}` }] : [];
  });
  const known = provider === "openai" ? [DEFAULT_MODEL, ...openaiModels.toReversed()] : [];
  return [...named, ...ofProfiles, ...known.map((model) => ({ ...usual, model, source: "" }))];
}
