import type { Readable } from "node:stream";
import type { CliContext } from "../../command/index.js";
import { describeError, fitted, write } from "../../command/index.js";
import { type BrigError, isBrigError } from "../../errors.js";
import { NeutralStream, neutralise } from "../../lib/terminal/terminal.js";
import type { ExitStatus, LineFold, Sandbox, StartOptions, UnresolvedSettings } from "../../sandbox/index.js";
import { appendOutput, emptyFold } from "../../sandbox/index.js";
import type { SessionState } from "./session-states.js";

/** The outcome of running the command in a state. */
export type Attempt =
  | { kind: "ran"; verdict: "good" | "bad" | "skip" | "stop"; status: ExitStatus; output: LineFold }
  /** The state could not be made again. */
  | { kind: "not-made"; error: BrigError };

export interface TryOptions {
  argv: readonly string[];
  timeoutMs: number | undefined;
  /** Whether the command's output is shown while it runs. */
  isVerbose: boolean;
  /** The settings of the sandbox that the flags contain. */
  settings: UnresolvedSettings;
  engine: StartOptions["engine"];
  context: CliContext;
}

/** Runs the command in a new sandbox whose workspace is in that state. Errors: those of a start, the signal's reason. */
export async function tryState(state: SessionState, options: TryOptions): Promise<Attempt> {
  const opened = await openState(state, options).catch((error: unknown) => {
    // The files of the host that the state is based on may be gone by now.
    if (isBrigError(error, "workspace.conflict") || isBrigError(error, "snapshot.invalid")) return error;
    throw error;
  });
  if (isBrigError(opened)) return { kind: "not-made", error: opened };
  await using sandbox = opened;
  const { argv, timeoutMs, context } = options;
  const { signal } = context;
  const program = await sandbox.spawn(argv, {
    stdin: "closed",
    mergeOutput: true,
    endsTree: true,
    timeoutMs,
    signal,
  });
  const [status, output] = await Promise.all([program.exit, readOutput(program.stdout, options)]);
  return { kind: "ran", verdict: verdictOf(status.exitCode), status, output };
}

async function openState(
  { snapshot, point }: SessionState,
  { settings, engine, context }: TryOptions,
): Promise<Sandbox> {
  const { environment, signal, stderr } = context;
  const { startFromSnapshot, resolveSettings } = await import("../../sandbox/index.js");
  return await startFromSnapshot(
    (workspace) => resolveSettings({ ...settings, workspace, workspaceKind: "overlay" }),
    {
      id: snapshot,
      at: point,
      brigHome: environment.brigHome,
      start: {
        engine,
        signal,
        onWarning: (warning) => {
          stderr.write(fitted(stderr, describeError(warning, { showsCauses: false })));
        },
      },
    },
  );
}

/** Interprets an exit code as `git bisect run` does. */
function verdictOf(exitCode: number): "good" | "bad" | "skip" | "stop" {
  if (exitCode === 0) return "good";
  if (exitCode === 125) return "skip";
  return exitCode < 128 ? "bad" : "stop";
}

async function readOutput(
  stream: Readable,
  { isVerbose, context: { essentialStderr: stderr, environment } }: TryOptions,
): Promise<LineFold> {
  const shown = stderr.isTTY === true ? new NeutralStream({ colours: !environment.forbidsColor }) : null;
  const decoder = new TextDecoder();
  let fold = emptyFold;
  for await (const chunk of stream as AsyncIterable<Uint8Array>) {
    fold = appendOutput(fold, neutralise(decoder.decode(chunk, { stream: true })));
    if (isVerbose) await write(stderr, shown === null ? chunk : shown.push(chunk));
  }
  if (isVerbose && shown !== null) await write(stderr, shown.end());
  return fold;
}
