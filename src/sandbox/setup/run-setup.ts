import { BrigError } from "../../errors.js";
import { neutralise } from "../../lib/terminal/terminal.js";
import { formatDuration } from "../../lib/time/durations.js";
import { openedSandboxOf, type Sandbox } from "../sandbox.js";

/** The most bytes of its output that are kept, from its beginning and its end. */
const MAX_OUTPUT_BYTES = 16 * 1024;
const SHOWN_LINES = 20;
const SHOWN_CHARS = 4000;

/** The way in which a set-up ended. */
export interface SetupEnd {
  exitCode: number;
  timedOut: boolean;
  durationMs: number;
  /** The beginning and the end of its output, without secrets. Not to be printed as it is. */
  output: string;
}

interface SetupOptions {
  cwd?: string | undefined;
  signal?: AbortSignal | undefined;
  /** Called with each piece of its output, without secrets, and not to be printed as it is. The set-up waits for a returned promise. */
  onOutput?: ((chunk: Uint8Array) => void | Promise<void>) | undefined;
}

/**
 * Runs the set-up of a sandbox in which nothing has run yet, with the network of the set-up. Before this resolves or rejects,
 * all processes that the set-up has started are ended, and the sandbox gets the network that commands after the set-up
 * have. Errors: those of `sandbox.exec`;
 * `usage.invalid` for a sandbox without a set-up.
 */
export async function runSetup(
  sandbox: Sandbox,
  { cwd, signal, onOutput }: SetupOptions = {},
): Promise<SetupEnd> {
  const { egress, settings } = openedSandboxOf(sandbox);
  const { setup, policy } = settings;
  if (setup === undefined)
    throw new BrigError(`the policy ${policy.name} does not let the set-up have its network`, {
      code: "usage.invalid",
      hint: "use another mode, or set up less",
    });
  egress?.set(setup.network, "setup");
  try {
    const { exitCode, timedOut, durationMs, output } = await sandbox.exec(setup.argv, {
      ...{ cwd, signal, timeoutMs: setup.timeoutMs },
      ...{ onStdout: onOutput, onStderr: onOutput },
      endsTree: true,
      maxOutputBytes: MAX_OUTPUT_BYTES,
    });
    return { exitCode, timedOut, durationMs, output };
  } finally {
    egress?.set(policy.policy.network, "run");
  }
}

/** Null if the set-up has succeeded. */
export function setupFailure({ exitCode, timedOut, durationMs, output }: SetupEnd): BrigError | null {
  if (exitCode === 0 && !timedOut) return null;
  const how = timedOut
    ? `took longer than ${formatDuration(durationMs)} and was stopped`
    : `failed with exit status ${exitCode}`;
  const lines = neutralise(output).trimEnd().split("\n").slice(-SHOWN_LINES);
  const shown = lines.join("\n").slice(-SHOWN_CHARS);
  return new BrigError(`the set-up ${how}${shown === "" ? "" : `:\n${shown}`}`, {
    code: "setup.failed",
    hint: "nothing was run after it; correct the command or the network of the set-up",
  });
}
