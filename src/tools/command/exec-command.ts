import { Readable } from "node:stream";
import { z } from "zod";
import { type CapturedOutput, captured, renderOutput } from "../../output/captured-output.js";
import { findDenial } from "../../policy/sandbox-denial.js";
import { type ArgumentsOf, defineTool } from "../define-tool.js";
import { interceptPatch, type PatchInterceptionNeeds } from "../patch/patch-interception.js";
import type { SandboxPlace } from "../review/action.js";
import type { RefusalReason } from "../review/approval.js";
import {
  escalationAliases,
  escalationOf,
  escalationParameters,
  refusedEscalation,
} from "../review/escalation.js";
import { type Attempt, doReviewed, failed, RETRY_DECLINED } from "../review/reviewed-action.js";
import type { Tool, ToolCallOptions, ToolOutput } from "../tool.js";
import {
  type CommandEnvironment,
  environmentIn,
  type Reviewed,
  type WorkingDirectory,
  workdirOf,
} from "../tool-needs.js";
import type { ToolExit, ToolProcess, ToolSandbox } from "../tool-sandbox.js";
import { refusedStart, sessionRejection, sessionStartError } from "./command-failure.js";
import type { CommandSession } from "./command-session.js";
import { adviseOfMissing, type MissingProgramNeeds } from "./missing-programs.js";
import {
  clampedYield,
  maxTokensOf,
  reportSession,
  type SessionReportNeeds,
  sessionParameters,
} from "./session-report.js";
import {
  hiddenLogin,
  refusedLogin,
  runnableArgv,
  type ShellAccess,
  scriptArgv,
  type UserShell,
} from "./user-shell.js";

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

export interface ExecCommandNeeds
  extends WorkingDirectory,
    CommandEnvironment,
    Reviewed,
    ShellAccess,
    SessionReportNeeds,
    MissingProgramNeeds,
    PatchInterceptionNeeds {}

export function execCommandTool(needs: ExecCommandNeeds): Tool<ToolOutput, ArgumentsOf<typeof parameters>> {
  return defineTool({
    name,
    description:
      "Runs a script in the sandbox and returns its output. If it is still running after a while, returns a session ID " +
      "with which write_stdin reads on or writes to it.",
    parameters,
    hiddenParameters: hiddenLogin(needs),
    parameterAliases: escalationAliases,
    supportsParallel: true,
    async run(args, call) {
      const refusal = refusedEscalation(needs.review, name, args) ?? refusedLogin(needs, args.login);
      if (refusal !== null) return { content: refusal, success: false };
      const shell = await chosenShell(needs, args.shell);
      const login = args.login ?? needs.allowsLoginShell;
      const shownArgv = scriptArgv(shell.path, args.cmd, { login });
      const cwd = workdirOf(needs, args.workdir);
      const asked = { kind: "command" as const, tool: name, argv: shownArgv, cwd };
      const patched = await interceptPatch(needs, asked, call);
      if (patched !== null) return withWallTime(patched);
      const command = {
        argv: runnableArgv(shell, args.cmd, { login }),
        shownArgv,
        cwd,
        tty: args.tty ?? false,
        yieldMs: clampedYield(args.yield_time_ms ?? DEFAULT_YIELD_MS),
      };
      const reviewed = await doReviewed(
        needs.review,
        {
          action: { ...asked, takesInput: command.tty, escalation: escalationOf(args) },
          attempt: (place) => run(needs, { ...command, place }, call),
        },
        call,
      );
      if (reviewed.kind === "refused") return refused(asked, reviewed.reason, call);
      return report(needs, reviewed, { argv: shownArgv, maxTokens: maxTokensOf(args) });
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
  needs: ExecCommandNeeds,
  { place, shownArgv, yieldMs, ...command }: SessionCommand & { place: SandboxPlace },
  call: ToolCallOptions,
): Promise<Attempt<RunSession>> {
  const sandbox = await needs.sandbox(place);
  const startedAt = performance.now();
  call.onActivity?.({ kind: "command-started", argv: shownArgv, cwd: command.cwd });
  const env = { ...environmentIn(needs, place), ...plainEnvironment };
  const session = await needs.sessions.keep(await start(sandbox, { ...command, env }), call.onActivity);
  adviseAgainstTooMany(needs, call);
  await waitOrEnd(needs, session, { yieldMs, signal: call.signal });
  const { exit } = session;
  if (exit === null) return { outcome: { session, startedAt, output: null }, findDenial: null };
  needs.sessions.forget(session);
  const output = session.takeOutput();
  await adviseOfMissing(needs, { ...exit, argv: command.argv, output: renderOutput(output) }, call);
  return {
    outcome: { session, startedAt, output },
    findDenial: failed(exit) ? (known) => findDenial({ ...exit, output: renderOutput(output) }, known) : null,
  };
}

/** A call that is aborted has told nobody of its session, so nobody could end it later: it goes with the call. */
async function waitOrEnd(
  needs: SessionReportNeeds,
  session: CommandSession,
  { yieldMs, signal }: { yieldMs: number; signal: AbortSignal | undefined },
): Promise<void> {
  try {
    await session.waitForEnd(yieldMs, signal);
  } catch (error) {
    if (signal?.aborted === true) {
      needs.sessions.forget(session);
      // Where it cannot be ended, the sandbox is gone and the command with it.
      await session.abandon().catch(() => undefined);
    }
    throw error;
  }
}

function report(
  needs: SessionReportNeeds,
  { outcome, isRetryDeclined }: { outcome: RunSession; isRetryDeclined: boolean },
  { argv, maxTokens }: { argv: readonly string[]; maxTokens: number },
): ToolOutput {
  const { session, startedAt, output } = outcome;
  const startFailure = session.exit?.startFailure ?? null;
  if (startFailure !== null) return { content: sessionStartError(argv, startFailure), success: false };
  const whole = output !== null && isRetryDeclined ? captured(output, RETRY_DECLINED) : output;
  return reportSession(needs, session, { startedAt, maxTokens, output: whole });
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

async function chosenShell(needs: ShellAccess, path: string | undefined): Promise<UserShell> {
  return path === undefined ? await needs.shell() : { path, lostPath: null, losesToolbox: false };
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

function adviseAgainstTooMany(needs: SessionReportNeeds, call: ToolCallOptions): void {
  const text = needs.sessions.advice();
  if (text !== null) call.onActivity?.({ kind: "advice", text });
}
