import type { SessionMode, SessionModeState } from "@agentclientprotocol/sdk";
import type { SandboxMode } from "../../../sandbox/index.js";
import { isSandboxMode } from "../../../sandbox/index.js";

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
