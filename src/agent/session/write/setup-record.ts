import { textEnd } from "../../../sandbox/index.js";
import type { SessionRecord } from "./session-file.js";

const MAX_OUTPUT_BYTES = 4096;

/** Records the end of a session's set-up, with the end of its output. `exitCode` is null if it was interrupted, or brig could not run it. */
export function setupRecord(setup: {
  sandboxId: string;
  argv: readonly string[];
  network: string;
  exitCode: number | null;
  durationMs: number | null;
  output: string;
}): SessionRecord {
  const { sandboxId, argv, network, exitCode, durationMs, output } = setup;
  return {
    type: "brig.setup",
    payload: {
      sandbox_id: sandboxId,
      command: argv,
      network,
      exit_code: exitCode,
      duration_ms: durationMs,
      output: textEnd(output, MAX_OUTPUT_BYTES),
    },
  };
}
