import { z } from "zod";
import { truncateText } from "../../sandbox/index.js";
import { type ArgumentsOf, defineTool, type OutputLimit } from "../define-tool.js";
import { failure, failureOutput, type Tool, type ToolOutput } from "../tool.js";
import { type AgentNeeds, agentId, requireAgents } from "./agent-call.js";
import type { AgentFileChange } from "./agents.js";

const parameters = z.object({
  target: z.string().describe("The id of an agent that works on a fork."),
  paths: z
    .array(z.string())
    .optional()
    .describe("Only these files, as paths relative to the workspace. Without it, all that it has changed."),
});

const marks = { add: "A", update: "M", delete: "D" } as const;

type ChangesTool = Tool<ToolOutput, ArgumentsOf<typeof parameters>>;

export function readAgentChangesTool({ agents, truncation }: AgentNeeds & OutputLimit): ChangesTool {
  return defineTool({
    name: "read_agent_changes",
    description: "Lists the files that an agent has changed on its fork of the workspace, with a diff.",
    parameters,
    supportsParallel: true,
    changesNoFiles: true,
    async run({ target, paths }, { signal }) {
      const id = agentId(target);
      const options = { paths, signal };
      try {
        const { files, text } = await requireAgents(agents).changes(id, options);
        if (files.length === 0) return { content: "the agent has changed no files", success: true };
        return { content: truncateText(`${listOf(files)}\n\n${text}`.trimEnd(), truncation), success: true };
      } catch (error) {
        return failureOutput(error);
      }
    },
  });
}

export function applyAgentChangesTool({ agents, truncation }: AgentNeeds & OutputLimit): ChangesTool {
  return defineTool({
    name: "apply_agent_changes",
    description:
      "Takes over what an agent has changed on its fork into your own workspace. If a file cannot be taken over, because it has changed meanwhile or another agent has changed it too, nothing is, and each conflict is named.",
    parameters,
    supportsParallel: false,
    async run({ target, paths }, { signal }) {
      const id = agentId(target);
      const options = { paths, signal };
      try {
        const applied = await requireAgents(agents).applyChanges(id, options);
        if (applied.kind === "applied") {
          const text = applied.files.length === 0 ? "there was nothing to apply" : listOf(applied.files);
          return { content: truncateText(text, truncation), success: true };
        }
        const lines = applied.conflicts.map(({ path, reason }) => `${path}: ${reason}`);
        return failure(
          truncateText(`nothing was applied, because of conflicts:\n${lines.join("\n")}`, truncation),
        );
      } catch (error) {
        return failureOutput(error);
      }
    },
  });
}

function listOf(files: readonly AgentFileChange[]): string {
  return files
    .map(({ path, kind, alsoChangedBy: others }) => {
      const note = others.length === 0 ? "" : ` (also changed by ${others.join(", ")})`;
      return `${marks[kind]} ${path}${note}`;
    })
    .join("\n");
}
