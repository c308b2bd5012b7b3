import { z } from "zod";
import { type ArgumentsOf, defineTool } from "../define-tool.js";
import { interceptPatch, type PatchInterceptionNeeds } from "../patch/patch-interception.js";
import {
  escalationAliases,
  escalationOf,
  escalationParameters,
  refusedEscalation,
} from "../review/escalation.js";
import type { Tool, ToolOutput, ToolSpec } from "../tool.js";
import { type OutputLimit, type WorkingDirectory, workdirOf } from "../tool-needs.js";
import { structuredOutput } from "./command-output.js";
import { type OneShotNeeds, runReviewed, timeoutOf } from "./one-shot-command.js";

const parameters = z.object({
  command: z
    .array(z.string())
    .describe(
      'The program and its arguments; no shell is involved, so use e.g. ["bash", "-lc", "…"] for one.',
    ),
  workdir: z.string().optional().describe("Directory to run in. Default: the session's."),
  timeout_ms: z
    .int()
    .nonnegative()
    .optional()
    .describe("The command is killed after so many milliseconds. Default: 10000."),
  ...escalationParameters,
});

export interface ShellNeeds extends WorkingDirectory, OutputLimit, OneShotNeeds, PatchInterceptionNeeds {}

export function shellTool(needs: ShellNeeds): Tool<ToolOutput, ArgumentsOf<typeof parameters>> {
  return argvTool(needs, { name: "shell" });
}

/** `shell` for models that know it by a kind of item of its own. */
export function localShellTool(needs: ShellNeeds): Tool<ToolOutput, ArgumentsOf<typeof parameters>> {
  return argvTool(needs, { name: "local_shell", spec: { type: "local_shell" } });
}

function argvTool(
  needs: ShellNeeds,
  { name, spec }: { name: string; spec?: ToolSpec },
): Tool<ToolOutput, ArgumentsOf<typeof parameters>> {
  return defineTool({
    name,
    spec,
    description:
      "Runs a program in the sandbox and returns its output, with its exit code and duration, as JSON.",
    parameters,
    parameterAliases: { timeout: "timeout_ms", ...escalationAliases },
    supportsParallel: false,
    async run(args, call) {
      const refusal = refusedEscalation(needs.review, name, args);
      if (refusal !== null) return { content: refusal, success: false };
      const command = {
        tool: name,
        argv: args.command,
        cwd: workdirOf(needs, args.workdir),
        timeoutMs: timeoutOf(args.timeout_ms),
        escalation: escalationOf(args),
      };
      const patched = await interceptPatch(needs, command, call);
      if (patched !== null) return patched;
      const result = await runReviewed(needs, command, call);
      if (result.kind !== "ended") return { content: result.text, success: false };
      return {
        content: structuredOutput(result.outcome, needs.truncation),
        success: result.outcome.exitCode === 0,
      };
    },
  });
}
