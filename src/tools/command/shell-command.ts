import { z } from "zod";
import { type ArgumentsOf, defineTool } from "../define-tool.js";
import { interceptPatch, type PatchInterceptionNeeds } from "../patch/patch-interception.js";
import {
  escalationAliases,
  escalationOf,
  escalationParameters,
  refusedEscalation,
} from "../review/escalation.js";
import type { Tool, ToolOutput } from "../tool.js";
import { type OutputLimit, type WorkingDirectory, workdirOf } from "../tool-needs.js";
import { freeformOutput } from "./command-output.js";
import { type OneShotNeeds, runReviewed, timeoutOf } from "./one-shot-command.js";
import { hiddenLogin, refusedLogin, runnableArgv, type ShellAccess, scriptArgv } from "./user-shell.js";

const parameters = z.object({
  command: z.string().describe("The script, run by the user's shell."),
  workdir: z.string().optional().describe("Directory to run in. Default: the session's."),
  timeout_ms: z
    .int()
    .nonnegative()
    .optional()
    .describe("The command is killed after so many milliseconds. Default: 10000."),
  login: z.boolean().optional().describe("Whether the shell reads the login profiles. Default: true."),
  ...escalationParameters,
});

const name = "shell_command";

export interface ShellCommandNeeds
  extends WorkingDirectory,
    OutputLimit,
    OneShotNeeds,
    PatchInterceptionNeeds,
    ShellAccess {}

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
      if (refusal !== null) return { content: refusal, success: false };
      const shell = await needs.shell();
      const login = args.login ?? needs.allowsLoginShell;
      const command = {
        tool: name,
        argv: runnableArgv(shell, args.command, { login }),
        shownArgv: scriptArgv(shell.path, args.command, { login }),
        cwd: workdirOf(needs, args.workdir),
        timeoutMs: timeoutOf(args.timeout_ms),
        escalation: escalationOf(args),
      };
      const { shownArgv: argv, cwd } = command;
      const patched = await interceptPatch(needs, { tool: name, argv, cwd }, call);
      if (patched !== null) return patched;
      const result = await runReviewed(needs, command, call);
      if (result.kind !== "ended") return { content: result.text, success: false };
      return {
        content: freeformOutput(result.outcome, needs.truncation),
        success: result.outcome.exitCode === 0,
      };
    },
  });
}
