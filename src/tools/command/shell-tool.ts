import { z } from "zod";
import { type ArgumentsOf, defineTool } from "../define-tool.js";
import {
  escalationAliases,
  escalationOf,
  escalationParameters,
  refusedEscalation,
} from "../review/escalation.js";
import type { Tool, ToolOutput, ToolSpec } from "../tool.js";
import { failure } from "../tool-failure.js";
import { type WorkingDirectory, workdirOf } from "../tool-needs.js";
import { structuredOutput } from "./command-output.js";
import { type OneShotNeeds, oneShotParameters, runOneShot, timeoutOf } from "./one-shot-command.js";

const parameters = z.object({
  command: z
    .array(z.string())
    .describe(
      'The program and its arguments; no shell is involved, so use e.g. ["bash", "-lc", "…"] for one.',
    ),
  ...oneShotParameters,
  ...escalationParameters,
});

interface ShellNeeds extends WorkingDirectory, OneShotNeeds {}

export function shellTool(needs: ShellNeeds): Tool<ToolOutput, ArgumentsOf<typeof parameters>> {
  return argvTool(needs, { name: "shell" });
}

/** `shell` for models that call it by a type of item of its own. */
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
      if (refusal !== null) return failure(refusal);
      const command = {
        tool: name,
        argv: args.command,
        shownArgv: args.command,
        cwd: workdirOf(needs, args.workdir),
        timeoutMs: timeoutOf(args.timeout_ms),
        escalation: escalationOf(args),
      };
      return await runOneShot(needs, command, { call, format: structuredOutput });
    },
  });
}
