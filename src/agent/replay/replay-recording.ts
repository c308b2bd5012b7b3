import { z } from "zod";
import { BrigError } from "../../errors.js";
import { type CallOutput, outputText } from "../../model/items.js";
import {
  readSessionLines,
  type SessionLine,
  type SessionMeta,
  type TurnSettings,
} from "../../session/read/session-lines.js";
import { type AgentStep, type StepCall, stepsOf } from "../../session/read/session-steps.js";
import { readTreeRecord, type TreeDescription } from "../../session/read/session-tree.js";

/** A session as something to be run again. */
export interface Recording {
  meta: SessionMeta;
  /** Segments of work with one setting, in order. */
  segments: RecordedSegment[];
  /** What the session left behind; null where the record does not say. */
  tree: TreeDescription | null;
  /** The image of the last sandbox; null where the record does not say. */
  image: string | null;
  /** What the engine knew that image by, e.g. `sha256:…`. */
  imageId: string | null;
  /** Calls that cannot be run again, and why. */
  skipped: { call: RecordedCall; reason: string }[];
}

export interface RecordedSegment {
  turn: TurnSettings | null;
  responses: RecordedCall[][];
}

export interface RecordedCall {
  /** Of the response, as `brig sessions show` numbers it. */
  step: number;
  /** Unlike a model's ids, never used twice. */
  replayId: string;
  name: string;
  input: string;
  isFreeform: boolean;
  output: CallOutput;
  /** What a person answered when asked about it, in order. */
  answers: RecordedAnswer[];
}

interface RecordedAnswer {
  answer: string;
  /** It was to run with full access, or could then run again with it. */
  isForFullAccess: boolean;
}

/** Reads what a session did. One that did nothing has no segments. */
export async function readRecording(
  path: string,
  options: { signal?: AbortSignal | undefined } = {},
): Promise<Recording> {
  const about: About = { meta: null, tree: null, image: null, imageId: null };
  const recording = { segments: [] as RecordedSegment[], skipped: [] as Recording["skipped"] };
  for await (const step of stepsOf(watched(readSessionLines(path, options), about)))
    if (step.source === "agent") addStep(recording, step);
  const { segments, skipped } = recording;
  if (about.meta === null && segments.length === 0 && skipped.length === 0) throw noSession(path);
  return { ...about, meta: about.meta ?? { id: "unknown" }, ...recording };
}

function noSession(path: string): BrigError {
  return new BrigError(`${path} is not the file of a session`, {
    code: "session.invalid",
    hint: "such a file has JSON lines, of which the first is its session_meta; brig sessions lists yours",
  });
}

type About = Pick<Recording, "tree" | "image" | "imageId"> & { meta: SessionMeta | null };

async function* watched(lines: AsyncIterable<SessionLine>, about: About): AsyncIterable<SessionLine> {
  for await (const line of lines) {
    if (line.kind === "record") look(line.record, about);
    yield line;
  }
}

function look(record: Extract<SessionLine, { kind: "record" }>["record"], about: About): void {
  if (record.type === "session_meta") about.meta ??= record.meta;
  // What was left behind before the last turn is not what the session left behind.
  if (record.type === "turn_context") about.tree = null;
  if (record.type !== "brig") return;
  if (record.name === "tree") about.tree = readTreeRecord(record.payload);
  if (record.name !== "sandbox" || record.payload.escalated === true) return;
  const { image, proof } = record.payload;
  about.image = typeof image === "string" ? image : null;
  about.imageId = imageIdIn(proof);
}

const proofShape = z.looseObject({ imageId: z.string() });

/** The image that a sandbox's proof names; null where it names none. */
export function imageIdIn(proof: unknown): string | null {
  return proofShape.safeParse(proof).data?.imageId ?? null;
}

function addStep({ segments, skipped }: Pick<Recording, "segments" | "skipped">, step: AgentStep): void {
  const calls: RecordedCall[] = [];
  for (const [index, call] of step.calls.entries()) {
    const recorded = {
      step: step.number,
      replayId: `call_${step.number}_${index + 1}`,
      name: call.name,
      input: call.input,
      isFreeform: call.isFreeform,
      output: call.output ?? "",
      answers: call.approvals.map(({ answer, place, may_escalate }) => ({
        answer: String(answer),
        isForFullAccess: place === "escalated" || may_escalate === true,
      })),
    };
    const reason = skipReason(call);
    if (reason === null) calls.push(recorded);
    else skipped.push({ call: recorded, reason });
  }
  if (calls.length === 0) return;
  const last = segments.at(-1);
  if (last !== undefined && isSameSetting(last.turn, step.turn)) last.responses.push(calls);
  else segments.push({ turn: step.turn, responses: [calls] });
}

function skipReason(call: StepCall): string | null {
  if (call.isHosted) return "the model's provider ran it";
  const { output } = call;
  if (output === null) return "it has no output in the record";
  const text = outputText({ output });
  const wasAborted =
    text === "aborted" || /^(?:Wall time: [\d.]+ seconds\n)?aborted by user(?: after |$)/.test(text);
  return wasAborted ? "it was interrupted" : null;
}

function isSameSetting(one: TurnSettings | null, other: TurnSettings | null): boolean {
  const key = (turn: TurnSettings | null) => JSON.stringify([turn?.cwd, turn?.sandbox_policy]);
  return key(one) === key(other);
}

/** Whether it may have run with full access, outside the session's own sandbox. */
export function hadFullAccess({ answers }: RecordedCall): boolean {
  return answers.some(({ answer, isForFullAccess }) => isForFullAccess && answer.startsWith("approved"));
}
