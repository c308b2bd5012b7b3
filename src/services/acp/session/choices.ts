import type { SessionConfigOption, SessionMode, SessionModeState } from "@agentclientprotocol/sdk";
import type { ModelChoice } from "../../../agent/index.js";
import { REASONING_EFFORTS } from "../../../agent/index.js";
import type { SandboxMode } from "../../../sandbox/index.js";
import { isSandboxMode } from "../../../sandbox/index.js";

/** This choice sends no effort in the request, so that the endpoint uses its own default. */
const DEFAULT_EFFORT = "default";

export function configOptions(
  { model, reasoningEffort = DEFAULT_EFFORT }: ModelChoice,
  models: readonly string[],
): SessionConfigOption[] {
  const names = [DEFAULT_EFFORT, ...REASONING_EFFORTS, reasoningEffort];
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

interface Preset extends SessionMode {
  sandboxMode: SandboxMode;
}

/** Modes that an editor offers: the same ones, under the same ids, as in Codex. */
const presets: readonly Preset[] = [
  {
    id: "read-only",
    sandboxMode: "read-only",
    name: "Read only",
    description: "Commands can read the workspace and write only temporary files; there is no network.",
  },
  {
    id: "auto",
    sandboxMode: "workspace-write",
    name: "Auto",
    description: "Commands can change files of the workspace, except .git; there is no network.",
  },
  {
    id: "full-access",
    sandboxMode: "danger-full-access",
    name: "Full access",
    description:
      "Commands are root in the container, have the network, and can change everything in the workspace.",
  },
];

/** The id of the mode for a session that was started with a policy file instead of a sandbox mode. */
const OWN_POLICY = "policy";

/**
 * `started` and `current`: a sandbox mode, or the name of the policy file that the session was started with.
 */
export function modeState(started: string, current: string): SessionModeState {
  const own = { id: OWN_POLICY, name: started, description: "The policy that brig was started with." };
  const modes = presets.map(({ id, name, description }) => ({ id, name, description }));
  return {
    currentModeId: modeIdOf(current),
    availableModes: isSandboxMode(started) ? modes : [own, ...modes],
  };
}

export function modeIdOf(sandboxMode: string): string {
  return presets.find((preset) => preset.sandboxMode === sandboxMode)?.id ?? OWN_POLICY;
}

/**
 * The sandbox mode with an id; brig's own names of the modes are accepted, too. Returns "started" for the
 * policy that the session was started with, and null for an unknown id.
 */
export function modeOf(id: string, started: string): SandboxMode | "started" | null {
  if (id === OWN_POLICY && !isSandboxMode(started)) return "started";
  return presets.find((preset) => preset.id === id || preset.sandboxMode === id)?.sandboxMode ?? null;
}
