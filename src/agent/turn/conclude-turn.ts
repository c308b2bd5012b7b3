import { isBrigError } from "../../errors.js";
import type { CompactionOutcome } from "../compaction/compactor.js";
import { abortedTurnMessage } from "../context/prompt.js";
import type { CompactionResult, TurnResult } from "../conversation-options.js";
import * as records from "../session/write/session-records.js";
import type { Transcript } from "./transcript.js";
import type { TurnEnding } from "./turn.js";

/** Decides how an error ends a turn. Throws it if it is a fault in brig. */
export function endingOf(error: unknown, { signal }: { signal?: AbortSignal | undefined }): TurnEnding {
  // `aborted` means that a person answered a question by ending the turn.
  if (signal?.aborted || isBrigError(error, "aborted")) return { status: "interrupted" };
  if (isBrigError(error)) return { status: "failed", error };
  throw error;
}

/** Records and reports the end of a turn. `number` counts from 1. */
export function concludeTurn(
  ending: TurnEnding,
  { id, number, model, transcript }: { id: string; number: number; model: string; transcript: Transcript },
): TurnResult {
  const { usage, lastMessage, toolCalls, callLatenciesMs } = transcript;
  recordEnding(ending, { id, transcript });
  const { status } = ending;
  transcript.keep(records.turnRecord({ turnId: id, number, status, model }));
  return { ...ending, lastMessage, usage, toolCalls, callLatenciesMs };
}

/** The result of a compaction that a person has asked for, and can interrupt. */
export async function compactionResult(
  compacting: Promise<CompactionOutcome>,
  outside: AbortSignal | undefined,
): Promise<CompactionResult> {
  try {
    return await compacting;
  } catch (error) {
    if (outside?.aborted) return { kind: "interrupted" };
    if (isBrigError(error)) return { kind: "failed", error };
    throw error;
  }
}

function recordEnding(ending: TurnEnding, { id, transcript }: { id: string; transcript: Transcript }): void {
  switch (ending.status) {
    case "completed":
      transcript.keep(records.turnCompletedEvent(id, transcript.lastMessage));
      transcript.emit({ kind: "turn-completed", usage: transcript.usage });
      break;
    case "interrupted":
      transcript.recordItem(abortedTurnMessage());
      transcript.keep(records.turnAbortedEvent(id));
      transcript.emit({ kind: "turn-interrupted" });
      break;
    case "failed":
      transcript.keep(records.errorEvent(ending.error));
      transcript.emit({ kind: "turn-failed", error: ending.error });
      break;
    default:
      ending satisfies never;
  }
}
