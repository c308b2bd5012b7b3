import { Readable } from "node:stream";
import { z } from "zod";
import type { CapturedOutput } from "../../sandbox/index.js";
import { captured, renderOutput } from "../../sandbox/index.js";
import {
  type ArgumentsOf,
  type CommandEnvironment,
  defineTool,
  environmentIn,
  type Reviewed,
  type WorkingDirectory,
  workdirOf,
} from "../define-tool.js";
import { interceptPatch, type PatchInterceptionNeeds } from "../patch/apply-patch-tool.js";
import type { SandboxPlace } from "../review/action.js";
import type { RefusalReason } from "../review/approval.js";
import {
  type Attempt,
  denialFinder,
  escalationAliases,
  escalationOf,
  escalationParameters,
  RETRY_DECLINED,
  refusedEscalation,
  runReviewed,
} from "../review/reviewed-action.js";
import { failure, type Tool, type ToolCallOptions, type ToolOutput } from "../tool.js";
import type { ToolProcess, ToolSandbox } from "../tool-sandbox.js";
import {
  adviseOfMissingProgram,
  type MissingProgramNeeds,
  sessionRejection,
  sessionStartError,
} from "./command-output.js";
import type { CommandSession } from "./command-session.js";
import { ReadCommand } from "./read-command.js";
import { refusedStart } from "./run-process.js";
import { clampedYield, reportSession, type SessionReportNeeds, sessionParameters } from "./session-report.js";
import { hiddenLogin, refusedLogin, type ShellAccess, shellArgv } from "./shell.js";

const name = "exec_command";
const TERMINAL = { rows: 24, cols: 80 };

/** Disables colours and pagers, and fixes the locale. */
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
    .default(false)
    .describe(
      "Gives the command a terminal of 24 rows and 80 columns, and an input. Default: false, and no input.",
    ),
  yield_time_ms: z
    .int()
    .nonnegative()
    .default(10_000)
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
      if (refusal !== null) return failure(refusal);
      const shell = args.shell === undefined ? await needs.shell() : { path: args.shell, pathRepair: "" };
      const login = args.login ?? needs.allowsLoginShell;
      const { argv, shownArgv } = shellArgv(shell, args.cmd, { login });
      const cwd = workdirOf(needs, args.workdir);
      const action = { kind: "command" as const, tool: name, argv: shownArgv, cwd };
      const read = new ReadCommand(shownArgv);
      const { patch } = read;
      const patched = patch === null ? null : await interceptPatch(needs, { tool: name, patch, cwd }, call);
      if (patched !== null) return withWallTime(patched);
      const command = {
        argv,
        shownArgv,
        cwd,
        tty: args.tty,
        yieldMs: clampedYield(args.yield_time_ms),
      };
      const reviewed = await runReviewed(
        needs.review,
        {
          action: { ...action, takesInput: command.tty, escalation: escalationOf(args) },
          command: read,
          attempt: (place) => run(needs, { ...command, place }, call),
        },
        call,
      );
      if (reviewed.kind === "refused") return refused(action, reviewed.reason, call);
      return report(needs, reviewed, { argv: shownArgv, maxTokens: args.max_output_tokens });
    },
  });
}

/** A command after the time that the model wanted to wait. */
interface RunSession {
  session: CommandSession;
  startedAt: number;
  /** All of the output if the command has ended; null if it runs, and the session keeps its output. */
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
  const session = await needs.sessions.add(
    await start(sandbox, { ...command, env, callId: call.origin?.callId }),
    call.onActivity,
  );
  const advice = needs.sessions.advice();
  if (advice !== null) call.onActivity?.({ kind: "advice", text: advice });
  await waitOrEnd(needs, session, { yieldMs, signal: call.signal });
  const { exit } = session;
  if (exit === null) return { outcome: { session, startedAt, output: null }, findDenial: null };
  needs.sessions.forget(session);
  const output = session.takeOutput();
  const text = renderOutput(output);
  await adviseOfMissingProgram(needs, { ...exit, argv: command.argv, output: text }, call);
  return { outcome: { session, startedAt, output }, findDenial: denialFinder(exit, text) };
}

/** An abort ends the session, since the model never learns its ID and could not end it. */
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
      // If that fails, the sandbox is gone, and the command with it.
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
  if (startFailure !== null)
    return { ...failure(sessionStartError(argv, startFailure)), command: session.exit ?? undefined };
  const whole = output !== null && isRetryDeclined ? captured(output, RETRY_DECLINED) : output;
  const reported = reportSession(needs, session, { startedAt, maxTokens, output: whole });
  return { ...reported, command: session.exit ?? undefined };
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
  return failure(content);
}

/** As Codex does it. A patch has no session to report, and its failures look like those of `apply_patch`. */
function withWallTime(output: ToolOutput): ToolOutput {
  if (!output.success) return output;
  return { ...output, content: `Wall time: 0.0000 seconds\nOutput:\n${output.content}` };
}

async function start(
  sandbox: ToolSandbox,
  {
    argv,
    cwd,
    tty,
    env,
    callId,
  }: Pick<SessionCommand, "argv" | "cwd" | "tty"> & {
    env: Record<string, string | undefined>;
    callId: string | undefined;
  },
): Promise<ToolProcess> {
  const streams = tty ? { pty: TERMINAL } : { stdin: "closed" as const, mergeOutput: true };
  try {
    return await sandbox.spawn(argv, { cwd, env, callId, ...streams });
  } catch (error) {
    return {
      stdin: null,
      stdout: Readable.from([]),
      stderr: null,
      exit: Promise.resolve(refusedStart(error)),
      kill: () => Promise.resolve(),
    };
  }
}
