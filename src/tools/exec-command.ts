import { Readable } from "node:stream";
import { z } from "zod";
import { refusedStart, sessionStartError } from "./command-failure.js";
import { defineTool } from "./define-tool.js";
import { escalationParameters, refusedEscalation } from "./escalation.js";
import { interceptPatch } from "./patch-interception.js";
import type { ToolExit, ToolProcess } from "./sandbox.js";
import { clampedYield, maxTokensOf, reportSession, sessionParameters } from "./session-report.js";
import type { Tool, ToolCallOptions, ToolOutput } from "./tool.js";
import { refusedLogin, runnableArgv, scriptArgv, type UserShell } from "./user-shell.js";
import { type Workbench, workdirOf } from "./workbench.js";

const DEFAULT_YIELD_MS = 10_000;
const TERMINAL = { rows: 24, cols: 80 };

/** Plain output without colours, pagers or prompts, in a fixed locale. */
const plainEnvironment = {
  NO_COLOR: "1",
  TERM: "dumb",
  LANG: "C.UTF-8",
  LC_CTYPE: "C.UTF-8",
  LC_ALL: "C.UTF-8",
  COLORTERM: "",
  PAGER: "cat",
  GIT_PAGER: "cat",
  GH_PAGER: "cat",
  CODEX_CI: "1",
};

const parameters = z.object({
  cmd: z.string().describe("The script, run by the shell."),
  workdir: z.string().optional().describe("Directory to run in. Default: the session's."),
  shell: z.string().optional().describe("The shell to use. Default: the user's."),
  login: z.boolean().optional().describe("Whether the shell reads the login profiles. Default: true."),
  tty: z
    .boolean()
    .optional()
    .describe(
      "Gives the command a terminal of 24 rows and 80 columns, and an input. Default: false, and no input.",
    ),
  yield_time_ms: z
    .int()
    .nonnegative()
    .optional()
    .describe("How long to wait for output before the command goes on in the background. Default: 10000."),
  ...sessionParameters,
  ...escalationParameters,
});

export function execCommandTool(bench: Workbench): Tool {
  return defineTool({
    name: "exec_command",
    description:
      "Runs a script in the sandbox and returns its output. If it is still running after a while, returns a session ID " +
      "with which write_stdin reads on or writes to it.",
    parameters,
    supportsParallel: false,
    async run(args, call) {
      const refusal = refusedEscalation(args, "cannot") ?? refusedLogin(bench, args.login);
      if (refusal !== null) return { content: refusal, success: false };
      const startedAt = performance.now();
      const shell = await chosenShell(bench, args.shell);
      const login = args.login ?? bench.allowsLoginShell;
      const shownArgv = scriptArgv(shell.path, args.cmd, { login });
      const command = {
        argv: runnableArgv(shell, args.cmd, { login }),
        cwd: workdirOf(bench, args.workdir),
        tty: args.tty ?? false,
      };
      const asked = { tool: "exec_command", argv: shownArgv, cwd: command.cwd };
      const patched = await interceptPatch(bench, asked, call);
      if (patched !== null) return withWallTime(patched);
      call.onActivity?.({ kind: "command-started", argv: shownArgv, cwd: command.cwd });
      const session = await bench.sessions.keep(await start(bench, command), call.onActivity);
      adviseAgainstTooMany(bench, call);
      await session.waitForEnd(clampedYield(args.yield_time_ms ?? DEFAULT_YIELD_MS), call.signal);
      if (session.exit?.startFailure != null) {
        bench.sessions.forget(session);
        const { startFailure, exitCode } = session.exit;
        return { content: sessionStartError(shownArgv, startFailure, exitCode), success: false };
      }
      return reportSession(bench, session, { startedAt, maxTokens: maxTokensOf(args) });
    },
  });
}

/** A patch makes no session, so there is no more to say about one. */
function withWallTime({ content, success }: ToolOutput): ToolOutput {
  return { content: `Wall time: 0.0000 seconds\nOutput:\n${content}`, success };
}

async function chosenShell(bench: Workbench, path: string | undefined): Promise<UserShell> {
  return path === undefined ? await bench.shell() : { path, lostPath: null };
}

async function start(
  bench: Workbench,
  { argv, cwd, tty }: { argv: readonly string[]; cwd: string; tty: boolean },
): Promise<ToolProcess> {
  const sandbox = await bench.sandbox();
  const env = { ...bench.environment, ...plainEnvironment };
  const streams = tty ? { pty: TERMINAL } : { stdin: "closed" as const, mergeOutput: true };
  try {
    return await sandbox.spawn(argv, { cwd, env, ...streams });
  } catch (error) {
    return unstarted(refusedStart(error));
  }
}

function unstarted(exit: ToolExit): ToolProcess {
  return {
    stdin: null,
    stdout: Readable.from([]),
    stderr: null,
    exit: Promise.resolve(exit),
    kill: () => Promise.resolve(),
  };
}

function adviseAgainstTooMany(bench: Workbench, call: ToolCallOptions): void {
  const text = bench.sessions.advice();
  if (text !== null) call.onActivity?.({ kind: "advice", text });
}
