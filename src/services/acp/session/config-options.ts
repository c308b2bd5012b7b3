import type { SessionConfigOption } from "@agentclientprotocol/sdk";
import type { ModelChoice } from "../session-opener.js";

const efforts = ["minimal", "low", "medium", "high", "xhigh"] as const;
/** This choice sends no effort in the request, so that the endpoint uses its own default. */
const DEFAULT_EFFORT = "default";

export function configOptions(
  { model, reasoningEffort = DEFAULT_EFFORT }: ModelChoice,
  models: readonly string[],
): SessionConfigOption[] {
  const names = [DEFAULT_EFFORT, ...efforts, reasoningEffort];
  return [
    {
      id: "model",
      name: "Model",
      category: "model",
      type: "select",
      currentValue: model,
      options: [...new Set([...models, model])].map((name) => ({ value: name, name })),
    },
    {
      id: "reasoning_effort",
      name: "Reasoning effort",
      category: "thought_level",
      type: "select",
      currentValue: reasoningEffort,
      options: [...new Set(names)].map((name) => ({ value: name, name })),
    },
  ];
}

/** Changes one option of a choice. Returns null for an unknown option or value. */
export function withChoice(
  choice: ModelChoice,
  { id, value, models }: { id: string; value: string | boolean; models: readonly string[] },
): ModelChoice | null {
  const option = configOptions(choice, models).find((each) => each.id === id);
  const isOffered =
    option?.type === "select" && option.options.some((each) => "value" in each && each.value === value);
  if (!isOffered || typeof value !== "string") return null;
  if (id === "model") return { ...choice, model: value };
  return { ...choice, reasoningEffort: value === DEFAULT_EFFORT ? undefined : value };
}
