import { type CallOutput, outputText } from "../model/items.js";
import { outputParts } from "./output-parts.js";
import { sessionIdIn } from "./replay-client.js";
import { comparable, firstDifference, type LineDifference, sortedLines } from "./replay-compare.js";
import type { RecordedCall } from "./replay-recording.js";

export interface CallDifference extends LineDifference {
  step: number;
  name: string;
  input: string;
}

interface Replayed {
  /** The outputs by replay id. */
  outputs: ReadonlyMap<string, CallOutput>;
  /** Replaces the directory of the replay by the recorded one. */
  back: (text: string) => string;
}

/** Finds the calls whose outputs differ. `normalised` names the differences that do not count. */
export function compareCalls(
  calls: readonly RecordedCall[],
  { outputs, back }: Replayed,
): { differences: CallDifference[]; normalised: string[] } {
  const normalised = new Set<string>();
  const differing: { call: RecordedCall; difference: CallDifference }[] = [];
  for (const call of calls) {
    const recorded = comparable(call.output, (text) => text);
    const replayed = comparable(outputs.get(call.replayId) ?? "(no output)", back);
    for (const name of [...recorded.normalised, ...replayed.normalised]) normalised.add(name);
    if (recorded.text === replayed.text) continue;
    // `grep_files` sorts by the time of a file's last change, which is not recorded.
    if (call.name === "grep_files" && sortedLines(recorded.text) === sortedLines(replayed.text)) {
      normalised.add("the order of grep_files, which is that of the last changes");
      continue;
    }
    const { step, name, input } = call;
    differing.push({
      call,
      difference: { step, name, input, ...firstDifference(recorded.text, replayed.text) },
    });
  }
  const same = resplitSessions(calls, { outputs, back });
  const differences = differing.flatMap(({ call, difference }) => (same.has(call) ? [] : [difference]));
  if (differences.length < differing.length)
    normalised.add("how a running command's output is split among the calls that read it");
  return { differences, normalised: [...normalised] };
}

/**
 * Finds the calls on command sessions whose output is the same as a whole. How it is split among the calls
 * that read it is only a matter of time.
 */
function resplitSessions(calls: readonly RecordedCall[], { outputs, back }: Replayed): Set<RecordedCall> {
  const sessions = new Map<number, RecordedCall[]>();
  for (const call of calls) {
    const id = call.name === "exec_command" ? sessionIdIn(outputText(call)) : writtenSession(call);
    if (id !== null) sessions.set(id, [...(sessions.get(id) ?? []), call]);
  }
  const whole = (texts: readonly string[]) =>
    JSON.stringify([texts.map(bodyOf).join(""), texts.map(endOf).join("")]);
  const same = new Set<RecordedCall>();
  for (const group of sessions.values()) {
    const recorded = group.map(outputText);
    const replayed = group.map(({ replayId }) => back(outputText({ output: outputs.get(replayId) ?? "" })));
    if (whole(recorded) === whole(replayed)) for (const call of group) same.add(call);
  }
  return same;
}

function writtenSession({ name, input }: RecordedCall): number | null {
  const digits = name === "write_stdin" ? /"session_id"\s*:\s*(\d+)/.exec(input)?.[1] : undefined;
  return digits === undefined ? null : Number(digits);
}

function bodyOf(output: string): string {
  if (/^write_stdin failed: Unknown process id \d+$/.test(output)) return "";
  return outputParts(output)?.body ?? output;
}

function endOf(output: string): string {
  const head = outputParts(output)?.head ?? "";
  return /^Process exited with code \d+$/m.exec(head)?.[0] ?? "";
}
