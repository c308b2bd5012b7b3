import { z } from "zod";
import { type ArgumentsOf, defineTool } from "../define-tool.js";
import { requireInput, type Tool, type ToolOutput } from "../tool.js";
import { type AgentNeeds, agentId, runAgentCall } from "./agent-call.js";
import { wireStatus } from "./agent-state.js";

const DEFAULT_MS = 30_000;
const SHORTEST_MS = 10_000;
const LONGEST_MS = 3_600_000;

const parameters = z.object({
  targets: z.array(z.string()).describe("The ids of the agents; the wait ends with the first that is done."),
  timeout_ms: z
    .int()
    .optional()
    .describe(
      `How long to wait, in milliseconds: ${DEFAULT_MS} unless given, at least ${SHORTEST_MS}, at most ${LONGEST_MS}. Prefer one long wait to many short ones.`,
    ),
});

export function waitForAgentTool({ agents }: AgentNeeds): Tool<ToolOutput, ArgumentsOf<typeof parameters>> {
  return defineTool({
    name: "wait_for_agent",
    description:
      "Waits until one of several agents is done, and returns the status of each that is, with its final message. After a timeout the status is empty.",
    parameters,
    parameterAliases: {
      ids: "targets",
      target: { parameter: "targets", convert: asList },
      id: { parameter: "targets", convert: asList },
      agent_id: { parameter: "targets", convert: asList },
    },
    supportsParallel: false,
    changesNoFiles: true,
    async run(args, call) {
      requireInput(args.targets.length > 0, "agent ids must be non-empty");
      const ids = [...new Set(args.targets.map(agentId))];
      const wanted = args.timeout_ms ?? DEFAULT_MS;
      requireInput(wanted > 0, "timeout_ms must be greater than zero");
      const timeoutMs = Math.min(Math.max(wanted, SHORTEST_MS), LONGEST_MS);
      return await runAgentCall(
        { tool: "wait", targets: ids, prompt: null },
        { agents, call },
        async (all) => {
          const { states, timedOut } = await all.wait(ids, { timeoutMs, signal: call.signal });
          const done = [...states];
          return {
            output: {
              status: Object.fromEntries(done.map(([id, state]) => [id, wireStatus(state)])),
              timed_out: timedOut,
            },
            states: Object.fromEntries(done),
            success: done.every(([, { kind }]) => kind !== "unknown" && kind !== "failed"),
          };
        },
      );
    },
  });
}

function asList(value: unknown): unknown {
  return Array.isArray(value) ? value : [value];
}
