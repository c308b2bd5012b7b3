import type { BrigError } from "../../errors.js";
import type { AgentSandbox } from "../agent-sandbox.js";

/** A command that runs in the sandbox of a new session before its first call. */
export interface SessionSetup {
  argv: readonly string[];
  /** Network of the set-up, as in `config.toml`. */
  network: string;
  /**
   * Runs it, and gives the sandbox its own network before it resolves or rejects. Aborting ends everything that it has
   * started. `onOutput` is called with each piece of its output.
   */
  run(
    sandbox: AgentSandbox,
    options: { signal: AbortSignal; onOutput(chunk: Uint8Array): void },
  ): Promise<EndedSetup>;
}

/** Result of a set-up. */
export interface EndedSetup {
  exitCode: number;
  durationMs: number;
  /** Beginning and end of the output. */
  output: string;
  /** Null if it has succeeded. */
  error: BrigError | null;
}
