import { Readable } from "node:stream";
import { z } from "zod";
import { type CapturedOutput, captured, renderOutput } from "../../output/captured-output.js";
import { findDenial } from "../../policy/sandbox-denial.js";
import type { RefusalReason, SandboxPlace } from "../approval.js";
import { defineTool } from "../define-tool.js";
import { escalationAliases, escalationOf, escalationParameters, refusedEscalation } from "../escalation.js";
import { interceptPatch } from "../patch/patch-interception.js";
import { type Attempt, doReviewed, failed, RETRY_DECLINED } from "../reviewed-action.js";
import type { Tool, ToolCallOptions, ToolOutput } from "../tool.js";
import type { ToolExit, ToolProcess, ToolSandbox } from "../tool-sandbox.js";
import { environmentIn, type Workbench, workdirOf } from "../workbench.js";
import { refusedStart, sessionRejection, sessionStartError } from "./command-failure.js";
import type { CommandSession } from "./command-session.js";
import { adviseOfMissing } from "./missing-programs.js";
import { clampedYield, maxTokensOf, reportSession, sessionParameters } from "./session-report.js";
import { hiddenLogin, refusedLogin, runnableArgv, scriptArgv, type UserShell } from "./user-shell.js";

const name = "exec_command";
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
    name,
    description:
      "Runs a script in the sandbox and returns its output. If it is still running after a while, returns a session ID " +
      "with which write_stdin reads on or writes to it.",
    parameters,
    hiddenParameters: hiddenLogin(bench),
    parameterAliases: escalationAliases,
    supportsParallel: true,
    async run(args, call) {
      const refusal = refusedEscalation(bench.review, name, args) ?? refusedLogin(bench, args.login);
      if (refusal !== null) return { content: refusal, success: false };
      const shell = await chosenShell(bench, args.shell);
      const login = args.login ?? bench.allowsLoginShell;
      const shownArgv = scriptArgv(shell.path, args.cmd, { login });
      const cwd = workdirOf(bench, args.workdir);
      const asked = { kind: "command" as const, tool: name, argv: shownArgv, cwd };
      const patched = await interceptPatch(bench, asked, call);
      if (patched !== null) return withWallTime(patched);
      const command = {
        argv: runnableArgv(shell, args.cmd, { login }),
        shownArgv,
        cwd,
        tty: args.tty ?? false,
        yieldMs: clampedYield(args.yield_time_ms ?? DEFAULT_YIELD_MS),
      };
      const reviewed = await doReviewed(
        bench.review,
        {
          action: { ...asked, takesInput: command.tty, escalation: escalationOf(args) },
          attempt: (place) => run(bench, { ...command, place }, call),
        },
        call,
      );
      if (reviewed.kind === "refused") return refused(asked, reviewed.reason, call);
      return report(bench, reviewed, { argv: shownArgv, maxTokens: maxTokensOf(args) });
    },
  });
}

/** A command that has run for as long as the model wanted to wait. */
interface RunSession {
  session: CommandSession;
  startedAt: number;
  /** All of its output where it has ended, else null: the session keeps it. */
  output: CapturedOutput | null;
}

interface SessionCommand {
  argv: readonly string[];
  shownArgv: readonly string[];
  cwd: string;
  tty: boolean;
  yieldMs: number;
}

async function run(
  bench: Workbench,
  { place, shownArgv, yieldMs, ...command }: SessionCommand & { place: SandboxPlace },
  call: ToolCallOptions,
): Promise<Attempt<RunSession>> {
  const sandbox = await bench.sandbox(place);
  const startedAt = performance.now();
  call.onActivity?.({ kind: "command-started", argv: shownArgv, cwd: command.cwd });
  const env = { ...environmentIn(bench, place), ...plainEnvironment };
  const session = await bench.sessions.keep(await start(sandbox, { ...command, env }), call.onActivity);
  adviseAgainstTooMany(bench, call);
  await waitOrEnd(bench, session, { yieldMs, signal: call.signal });
  const { exit } = session;
  if (exit === null) return { outcome: { session, startedAt, output: null }, findDenial: null };
  bench.sessions.forget(session);
  const output = session.takeOutput();
  await adviseOfMissing(bench, { ...exit, argv: command.argv, output: renderOutput(output) }, call);
  return {
    outcome: { session, startedAt, output },
    findDenial: failed(exit) ? (known) => findDenial({ ...exit, output: renderOutput(output) }, known) : null,
  };
}

/** A call that is aborted has told nobody of its session, so nobody could end it later: it goes with the call. */
async function waitOrEnd(
  bench: Workbench,
  session: CommandSession,
  { yieldMs, signal }: { yieldMs: number; signal: AbortSignal | undefined },
): Promise<void> {
  try {
    await session.waitForEnd(yieldMs, signal);
  } catch (error) {
    if (signal?.aborted === true) {
      bench.sessions.forget(session);
      // Where it cannot be ended, the sandbox is gone and the command with it.
      await session.abandon().catch(() => undefined);
    }
    throw error;
  }
}

function report(
  bench: Workbench,
  { outcome, isRetryDeclined }: { outcome: RunSession; isRetryDeclined: boolean },
  { argv, maxTokens }: { argv: readonly string[]; maxTokens: number },
): ToolOutput {
  const { session, startedAt, output } = outcome;
  if (session.exit?.startFailure != null) {
    const { startFailure, exitCode } = session.exit;
    return { content: sessionStartError(argv, startFailure, exitCode), success: false };
  }
  const whole = output !== null && isRetryDeclined ? captured(output, RETRY_DECLINED) : output;
  return reportSession(bench, session, { startedAt, maxTokens, output: whole });
}

function refused(
  { argv, cwd }: { argv: readonly string[]; cwd: string },
  reason: RefusalReason,
  call: ToolCallOptions,
): ToolOutput {
  const isUsers = reason.by === "user";
  const content = sessionRejection(argv, isUsers ? "rejected by user" : reason.text);
  const shown = isUsers ? "exec command rejected by user" : reason.text;
  call.onActivity?.({ kind: "command-declined", argv, cwd, reason: shown });
  return { content, success: false };
}

/** A patch makes no session, so there is no more to say about one; what is wrong with it is said as by the tool for patches. */
function withWallTime(output: ToolOutput): ToolOutput {
  if (!output.success) return output;
  return { ...output, content: `Wall time: 0.0000 seconds\nOutput:\n${output.content}` };
}

async function chosenShell(bench: Workbench, path: string | undefined): Promise<UserShell> {
  return path === undefined ? await bench.shell() : { path, lostPath: null, losesToolbox: false };
}

async function start(
  sandbox: ToolSandbox,
  {
    argv,
    cwd,
    tty,
    env,
  }: Pick<SessionCommand, "argv" | "cwd" | "tty"> & { env: Record<string, string | undefined> },
): Promise<ToolProcess> {
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
