import { z } from "zod";
import { type ArgumentsOf, defineTool } from "../define-tool.js";
import {
  escalationAliases,
  escalationOf,
  escalationParameters,
  refusedEscalation,
} from "../review/escalation.js";
import type { Tool, ToolOutput } from "../tool.js";
import { failure } from "../tool-failure.js";
import { type WorkingDirectory, workdirOf } from "../tool-needs.js";
import { freeformOutput } from "./command-output.js";
import { type OneShotNeeds, oneShotParameters, runOneShot, timeoutOf } from "./one-shot-command.js";
import { hiddenLogin, refusedLogin, type ShellAccess, shellArgv } from "./user-shell.js";

const parameters = z.object({
  command: z.string().describe("The script, run by the user's shell."),
  ...oneShotParameters,
  login: z.boolean().optional().describe("Whether the shell reads the login profiles. Default: true."),
  ...escalationParameters,
});

const name = "shell_command";

export interface ShellCommandNeeds extends WorkingDirectory, OneShotNeeds, ShellAccess {}

export function shellCommandTool(needs: ShellCommandNeeds): Tool<ToolOutput, ArgumentsOf<typeof parameters>> {
  return defineTool({
    name,
    description: "Runs a shell script in the sandbox and returns its exit code, duration and output.",
    parameters,
    hiddenParameters: hiddenLogin(needs),
    parameterAliases: { timeout: "timeout_ms", ...escalationAliases },
    supportsParallel: false,
    async run(args, call) {
      const refusal = refusedEscalation(needs.review, name, args) ?? refusedLogin(needs, args.login);
      if (refusal !== null) return failure(refusal);
      const shell = await needs.shell();
      const login = args.login ?? needs.allowsLoginShell;
      const command = {
        tool: name,
        ...shellArgv(shell, args.command, { login }),
        cwd: workdirOf(needs, args.workdir),
        timeoutMs: timeoutOf(args.timeout_ms),
        escalation: escalationOf(args),
      };
      return await runOneShot(needs, command, { call, format: freeformOutput });
    },
  });
}
