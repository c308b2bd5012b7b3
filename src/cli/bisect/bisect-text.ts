import { neutraliseLine } from "../../lib/terminal/terminal.js";
import { formatDuration } from "../../lib/time/durations.js";
import { clipped, lastLines } from "../../sandbox/index.js";
import { callTitle, changedText } from "../display/call-text.js";
import type { BisectOutcome, Tried } from "./bisect-states.js";
import type { SessionState, SessionStates, StateOrigin } from "./session-states.js";
import type { Attempt } from "./try-state.js";

const CALL_CHARS = 200;
const PATHS_CHARS = 400;
/** How many of the last lines of the command's output are shown when a search has ended early. */
const SHOWN_LINES = 20;

/** One line about an attempt, such as "after call 3 of 5 (step 7) it fails: exit 1, 1.2 s". */
export function triedText({ state, attempt }: Tried): string {
  return `${stateText(state)} ${attemptText(attempt)}\n`;
}

export function stateText({ point, origin }: SessionState): string {
  switch (origin.kind) {
    case "start":
      return "at the start";
    case "resumed":
      return "where the session was resumed";
    case "step":
      return `after ${stepText(origin)}`;
    case "unknown":
      return `at restore point ${point}`;
    default:
      return origin satisfies never;
  }
}

/** Counts calls, because steps also include messages and calls without changes. The step is there for `brig resume --at`. */
function stepText({ change, agent, turn }: StateOrigin & { kind: "step" }): string {
  const step =
    agent === null
      ? `step ${change.step}`
      : `step ${change.step} of the agent ${neutraliseLine(agent.nickname ?? agent.id)}`;
  return turn === null ? `/undo before ${step}` : `call ${turn.number} of ${turn.count} (${step})`;
}

function attemptText(attempt: Attempt): string {
  if (attempt.kind === "not-made") return `it cannot be tried: ${neutraliseLine(attempt.error.message)}`;
  const { exitCode, timedOut, outOfMemory, durationMs } = attempt.status;
  const verdicts = {
    good: "it passes",
    bad: "it fails",
    skip: "it cannot say",
    stop: "it was ended",
  } as const;
  const more = timedOut ? ", the time was up" : outOfMemory ? ", the memory was used up" : "";
  return `${verdicts[attempt.verdict]}: exit ${exitCode}${more}, ${formatDuration(durationMs)}`;
}

/** The text for standard output: the calls that may have made the command fail, and how to go on. */
export function foundText(
  { firstBad, unjudged }: BisectOutcome & { kind: "found" },
  { goOn }: { goOn: string | null },
): string {
  const title =
    unjudged.length === 0
      ? `it fails since ${subjectText(firstBad)}\n`
      : "it fails since one of these; about the states in between the command could not say anything\n";
  const details = [...unjudged, firstBad].map((state) =>
    detailsText(state, { isNamed: unjudged.length > 0 }),
  );
  const next = goOn === null ? "" : `to go on from before it: ${goOn}\n`;
  return `${title}${details.join("")}${next}`;
}

function subjectText({ origin }: SessionState): string {
  if (origin.kind === "step") return stepText(origin);
  if (origin.kind === "resumed") return "the session was resumed: your files had changed meanwhile";
  return "a change that belongs to no call; a program that a call had started may have made it";
}

function detailsText(state: SessionState, { isNamed }: { isNamed: boolean }): string {
  const { origin } = state;
  const lines = isNamed ? [subjectText(state)] : [];
  if (origin.kind === "step") {
    const { call, point } = origin.change;
    if (call !== null) lines.push(`call     ${clipped(callTitle(call.name, call.input), CALL_CHARS)}`);
    lines.push(`changed  ${clipped(changedText(point), PATHS_CHARS)}`);
  }
  return lines.map((line) => `  ${line}\n`).join("");
}

/** The text for standard error before the search: how many calls there are, and about how many tries. */
export function beginningText(
  { workspace, states }: Pick<SessionStates, "workspace" | "states">,
  { tryCount }: { tryCount: number },
): string {
  const calls = states.filter(({ origin }) => origin.kind === "step" && origin.turn !== null).length;
  const others = states.length - 1 - calls;
  const changed = `${calls} ${calls === 1 ? "call" : "calls"} changed ${neutraliseLine(workspace)}`;
  const more = others === 0 ? "" : `, and something else did ${others === 1 ? "once" : `${others} times`}`;
  return `brig: ${changed}${more}; about ${tryCount} tries are needed\n`;
}

/** The text for standard error that says why nothing was found. */
export function notFoundText(kind: Exclude<BisectOutcome["kind"], "found">, last: Tried | undefined): string {
  const output = last?.attempt.kind === "ran" ? lastLines(last.attempt.output, SHOWN_LINES).lines : [];
  const shown = output.map((line) => `  │ ${line}\n`).join("");
  return `brig: ${reasons[kind]}\n${kind === "passes-at-end" ? "" : shown}hint: ${hints[kind]}\n`;
}

const reasons = {
  "fails-at-start": "the command fails at the start already, so no call of the session broke it",
  "passes-at-end": "the command passes at the end, so there is nothing to find",
  "cannot-judge": "the command must pass or fail at the start and at the end of the session",
  stopped: "the command was ended by a signal, which says nothing about the state",
} as const;

const hints = {
  "fails-at-start": "it must pass in the state that the session began with; -v shows all that it prints",
  "passes-at-end": "it must fail in the last state of the session, and exit with a code from 1 to 127",
  "cannot-judge": "exit code 125 means that it cannot say; -v shows all that it prints",
  stopped:
    "to count a try that takes too long as failed: --timeout TIME; -v shows all that the command prints",
} as const;
