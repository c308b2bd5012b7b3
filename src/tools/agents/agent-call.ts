import { z } from "zod";
import { BrigError } from "../../errors.js";
import { clipped } from "../../sandbox/index.js";
import {
  type AgentCallName,
  failureOutput,
  requireInput,
  type ToolCallOptions,
  type ToolOutput,
} from "../tool.js";
import type { AgentState, Agents } from "./agents.js";

export interface AgentNeeds {
  /** Null in a session that cannot start agents. */
  readonly agents: Agents | null;
}

/** The parameter that names an agent, and the other names under which models may give it. */
export const agentTarget = {
  id: z.string().describe("The id of the agent, as spawn_agent returned it."),
  aliases: { id: "target", agent_id: "target" },
} as const;

/** The result of a call, and the states of the agents that it was about. */
interface AgentCallResult {
  output: unknown;
  states: Readonly<Record<string, AgentState>>;
  /** Whether the call had the effect that was asked for. Default: true. */
  success?: boolean;
}

interface AgentCallStep {
  tool: AgentCallName;
  /** The ids of the agents; empty if the call starts one. */
  targets: readonly string[];
  prompt: string | null;
}

/**
 * Runs a call of a tool for agents, and reports its start and its end. The result of `run` becomes the
 * output, as JSON. A failure that the model can react to also becomes an output.
 */
export async function runAgentCall(
  { tool, targets, prompt }: AgentCallStep,
  { agents, call }: { agents: Agents | null; call: ToolCallOptions },
  run: (agents: Agents) => Promise<AgentCallResult>,
): Promise<ToolOutput> {
  const all = requireAgents(agents);
  call.onActivity?.({ kind: "agent-call-started", tool, targets, prompt });
  const end = (states: Readonly<Record<string, AgentState>>, success: boolean) =>
    call.onActivity?.({ kind: "agent-call-ended", tool, targets, prompt, states, success });
  try {
    const { output, states, success = true } = await run(all);
    end(states, success);
    return { content: JSON.stringify(output), success: true };
  } catch (error) {
    end(Object.fromEntries(targets.map((id) => [id, all.stateOf(id)])), false);
    return failureOutput(error);
  }
}

/** Error: `tool.failed` in a session that cannot start agents. */
export function requireAgents(agents: Agents | null): Agents {
  if (agents !== null) return agents;
  throw new BrigError("this session cannot start agents", {
    code: "tool.failed",
    hint: "brig run and a conversation can",
  });
}

const SHOWN_ID_CHARS = 100;
const uuid = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i;

/** Returns the id in lower case. Throws `tool.invalid-input` if it is not a UUID. */
export function agentId(id: string): string {
  requireInput(uuid.test(id), `invalid agent id ${clipped(id, SHOWN_ID_CHARS)}: it is not a UUID`);
  return id.toLowerCase();
}
