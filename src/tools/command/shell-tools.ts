import { z } from "zod";
import type { CapturedOutput, CommandEnd, TruncationPolicy } from "../../sandbox/index.js";
import {
  captured,
  KEPT_OUTPUT_BYTES,
  keptBytes,
  OutputCapture,
  renderOutput,
  shrinkOutput,
} from "../../sandbox/index.js";
import {
  type ArgumentsOf,
  type CommandEnvironment,
  defineTool,
  environmentIn,
  type OutputLimit,
  type WorkingDirectory,
  workdirOf,
} from "../define-tool.js";
import { interceptPatch, type PatchInterceptionNeeds } from "../patch/apply-patch-tool.js";
import type { EscalationRequest, SandboxPlace } from "../review/action.js";
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
import { failure, type Tool, type ToolCallOptions, type ToolOutput, type ToolSpec } from "../tool.js";
import {
  adviseOfMissingProgram,
  causeNotice,
  type EndedCommand,
  freeformOutput,
  type MissingProgramNeeds,
  signalError,
  startError,
  structuredOutput,
  TREE_ENDED,
  withTimeout,
} from "./command-output.js";
import { ReadCommand } from "./read-command.js";
import { runProcess } from "./run-process.js";
import { hiddenLogin, refusedLogin, type ShellAccess, shellArgv } from "./shell.js";

const DEFAULT_TIMEOUT_MS = 10_000;
const MAX_TIMEOUT_MS = 24 * 60 * 60 * 1000;

const oneShotParameters = {
  workdir: z.string().optional().describe("Directory to run in. Default: the session's."),
  timeout_ms: z
    .int()
    .nonnegative()
    .optional()
    .describe("The command is killed after so many milliseconds. Default: 10000."),
};

const parameterAliases = { timeout: "timeout_ms", ...escalationAliases };

const scriptParameters = z.object({
  command: z.string().describe("The script, run by the user's shell."),
  ...oneShotParameters,
  login: z.boolean().optional().describe("Whether the shell reads the login profiles. Default: true."),
  ...escalationParameters,
});

const argvParameters = z.object({
  command: z
    .array(z.string())
    .describe(
      'The program and its arguments; no shell is involved, so use e.g. ["bash", "-lc", "…"] for one.',
    ),
  ...oneShotParameters,
  ...escalationParameters,
});

interface ShellNeeds
  extends CommandEnvironment,
    OutputLimit,
    MissingProgramNeeds,
    PatchInterceptionNeeds,
    WorkingDirectory {}

export interface ShellCommandNeeds extends ShellNeeds, ShellAccess {}

export function shellCommandTool(
  needs: ShellCommandNeeds,
): Tool<ToolOutput, ArgumentsOf<typeof scriptParameters>> {
  const name = "shell_command";
  return defineTool({
    name,
    description: "Runs a shell script in the sandbox and returns its exit code, duration and output.",
    parameters: scriptParameters,
    hiddenParameters: hiddenLogin(needs),
    parameterAliases,
    supportsParallel: false,
    async run(args, call) {
      const refusal = refusedEscalation(needs.review, name, args) ?? refusedLogin(needs, args.login);
      if (refusal !== null) return failure(refusal);
      const shell = await needs.shell();
      const login = args.login ?? needs.allowsLoginShell;
      const command = commandOf(needs, name, { ...args, ...shellArgv(shell, args.command, { login }) });
      return await runOneShot(needs, command, { call, format: freeformOutput });
    },
  });
}

export function shellTool(needs: ShellNeeds): Tool<ToolOutput, ArgumentsOf<typeof argvParameters>> {
  return argvTool(needs, { name: "shell" });
}

/** `shell` for models that call it by a type of item of its own. */
export function localShellTool(needs: ShellNeeds): Tool<ToolOutput, ArgumentsOf<typeof argvParameters>> {
  return argvTool(needs, { name: "local_shell", spec: { type: "local_shell" } });
}

function argvTool(
  needs: ShellNeeds,
  { name, spec }: { name: string; spec?: ToolSpec },
): Tool<ToolOutput, ArgumentsOf<typeof argvParameters>> {
  return defineTool({
    name,
    spec,
    description:
      "Runs a program in the sandbox and returns its output, with its exit code and duration, as JSON.",
    parameters: argvParameters,
    parameterAliases,
    supportsParallel: false,
    async run(args, call) {
      const refusal = refusedEscalation(needs.review, name, args);
      if (refusal !== null) return failure(refusal);
      const command = commandOf(needs, name, { ...args, argv: args.command, shownArgv: args.command });
      return await runOneShot(needs, command, { call, format: structuredOutput });
    },
  });
}

interface OneShotCommand {
  /** The tool that the model called. */
  tool: string;
  argv: readonly string[];
  /** What people are shown instead of `argv`. */
  shownArgv: readonly string[];
  cwd: string;
  timeoutMs: number;
  escalation: EscalationRequest;
}

type OneShotArguments = Pick<OneShotCommand, "argv" | "shownArgv"> &
  Parameters<typeof escalationOf>[0] & { workdir?: string | undefined; timeout_ms?: number | undefined };

function commandOf(needs: WorkingDirectory, tool: string, args: OneShotArguments): OneShotCommand {
  const { argv, shownArgv, workdir, timeout_ms } = args;
  const timeoutMs = timeoutOf(timeout_ms);
  return { tool, argv, shownArgv, cwd: workdirOf(needs, workdir), timeoutMs, escalation: escalationOf(args) };
}

/** A model's command always has a time limit: at least 1 ms, since 0 would mean none, and at most a day. */
export function timeoutOf(timeoutMs: number | undefined): number {
  return Math.min(Math.max(timeoutMs ?? DEFAULT_TIMEOUT_MS, 1), MAX_TIMEOUT_MS);
}

/** Runs a command once it is approved, or applies the patch if it does nothing but that. */
async function runOneShot(
  needs: ShellNeeds,
  command: OneShotCommand,
  {
    call,
    format,
  }: { call: ToolCallOptions; format: (command: EndedCommand, policy: TruncationPolicy) => string },
): Promise<ToolOutput> {
  const { tool, shownArgv: argv, cwd, escalation } = command;
  const read = new ReadCommand(argv);
  const { patch } = read;
  const patched = patch === null ? null : await interceptPatch(needs, { tool, patch, cwd }, call);
  if (patched !== null) return patched;
  const reviewed = await runReviewed(
    needs.review,
    {
      action: { kind: "command", tool, argv, cwd, takesInput: false, escalation },
      command: read,
      attempt: (place) => attempt(needs, { ...command, place }, call),
    },
    call,
  );
  if (reviewed.kind === "refused") {
    const reason = reviewed.reason.by === "user" ? "exec command rejected by user" : reviewed.reason.text;
    call.onActivity?.({ kind: "command-declined", argv, cwd, reason });
    return failure(reason);
  }
  const note = reviewed.isRetryDeclined ? RETRY_DECLINED : "";
  const { end, output } = reviewed.outcome;
  if (end.startFailure !== null) return { ...failure(startError(end.startFailure) + note), command: end };
  if (end.signal !== null && !end.timedOut)
    return { ...failure(signalError(end.signal, renderOutput(output)) + note), command: end };
  const content = format({ end, output: captured(output, note) }, needs.truncation);
  return { content, success: end.exitCode === 0, command: end };
}

/**
 * The output is all of stdout, then all of stderr. Of each, and of both together, 1 MiB is kept: the head and
 * the tail, with the number of omitted bytes between them.
 */
async function attempt(
  needs: ShellNeeds,
  { argv, shownArgv, cwd, timeoutMs, place }: OneShotCommand & { place: SandboxPlace },
  call: ToolCallOptions,
): Promise<Attempt<EndedCommand>> {
  call.onActivity?.({ kind: "command-started", argv: shownArgv, cwd });
  const sandbox = await needs.sandbox(place);
  const stdout = new OutputCapture();
  const stderr = new OutputCapture();
  const into = (capture: OutputCapture) => (chunk: Uint8Array) => {
    capture.push(chunk);
    call.onActivity?.({ kind: "command-output", chunk });
  };
  const { signal, origin } = call;
  const env = environmentIn(needs, place);
  const options = { argv, cwd, env, timeoutMs, signal, callId: origin?.callId };
  const end = await runProcess(sandbox, options, { stdout: into(stdout), stderr: into(stderr) });
  const output = aggregate(stdout.take(), stderr.take(), end);
  call.onActivity?.({
    kind: "command-ended",
    exitCode: end.exitCode,
    output: end.startFailure?.message ?? renderOutput(withTimeout({ end, output })),
    causes: end.causes,
    durationMs: end.durationMs,
    usage: end.usage,
  });
  const text = renderOutput(output);
  await adviseOfMissingProgram(needs, { ...end, argv, output: text }, call);
  return { outcome: { end, output }, findDenial: denialFinder(end, text) };
}

/** One third of the limit is for stdout and two thirds for stderr; each may use what the other leaves. */
function aggregate(stdout: CapturedOutput, stderr: CapturedOutput, end: CommandEnd): CapturedOutput {
  const stderrShare = KEPT_OUTPUT_BYTES - Math.min(keptBytes(stdout), Math.floor(KEPT_OUTPUT_BYTES / 3));
  const stderrBytes = Math.min(keptBytes(stderr), stderrShare);
  return captured(
    shrinkOutput(stdout, KEPT_OUTPUT_BYTES - stderrBytes),
    shrinkOutput(stderr, stderrBytes),
    causeNotice(end.causes),
    end.treeEnded ? TREE_ENDED : "",
  );
}
