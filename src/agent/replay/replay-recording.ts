import { z } from "zod";
import { BrigError } from "../../errors.js";
import { agentToolAliases, agentToolNames } from "../../tools/index.js";
import { type CallOutput, outputText } from "../model/items.js";
import {
  type ReadRecord,
  readSessionLines,
  type SessionLine,
  type SessionMeta,
  type TurnSettings,
} from "../session/read/session-lines.js";
import { type AgentStep, type StepCall, stepsOf } from "../session/read/session-steps.js";
import { readTreeRecord, type TreeDescription } from "../session/read/session-tree.js";

/** The parts of a recorded session that a replay needs. */
export interface Recording {
  meta: SessionMeta;
  /** Parts of the session that ran with one setting, in order. */
  segments: RecordedSegment[];
  /** Files that the session left in its directory; null if they were not recorded. */
  tree: TreeDescription | null;
  /** The image of the last sandbox; null if it was not recorded. */
  image: string | null;
  /** The engine's id of that image, such as `sha256:…`. */
  imageId: string | null;
  /** The calls that cannot be run again. */
  skipped: { call: RecordedCall; reason: string }[];
}

export interface RecordedSegment {
  turn: TurnSettings | null;
  responses: RecordedCall[][];
}

export interface RecordedCall {
  /** The step of the response, as `brig sessions show` numbers it. */
  step: number;
  /** Unique, unlike ids that models give. */
  replayId: string;
  name: string;
  input: string;
  isFreeform: boolean;
  output: CallOutput;
  /** A person's answers to approval questions about the call, in order. */
  answers: RecordedAnswer[];
}

interface RecordedAnswer {
  answer: string;
  /** Whether the question was about running with full access, at first or after a failure. */
  isForFullAccess: boolean;
}

/** Reads the calls of a session. Error: `session.invalid` for a file that is not a session's. */
export async function readRecording(
  path: string,
  options: { signal?: AbortSignal | undefined } = {},
): Promise<Recording> {
  const recording: PartialRecording = {
    meta: null,
    segments: [],
    tree: null,
    image: null,
    imageId: null,
    skipped: [],
  };
  for await (const step of stepsOf(addingFacts(readSessionLines(path, options), recording)))
    if (step.source === "agent") addStep(recording, step);
  const { meta, segments, skipped } = recording;
  if (meta === null && segments.length === 0 && skipped.length === 0)
    throw new BrigError(`${path} is not the file of a session`, {
      code: "session.invalid",
      hint: "a session file has JSON lines and starts with session_meta; brig sessions lists yours",
    });
  return { ...recording, meta: meta ?? { id: "unknown" } };
}

type PartialRecording = Omit<Recording, "meta"> & { meta: SessionMeta | null };

/** Passes the lines on, and adds what their records say about the session to the recording. */
async function* addingFacts(
  lines: AsyncIterable<SessionLine>,
  recording: PartialRecording,
): AsyncIterable<SessionLine> {
  for await (const line of lines) {
    if (line.kind === "record") addFacts(line.record, recording);
    yield line;
  }
}

function addFacts(record: ReadRecord, recording: PartialRecording): void {
  if (record.type === "session_meta") recording.meta ??= record.meta;
  // A later turn may have changed what was described.
  if (record.type === "turn_context") recording.tree = null;
  if (record.type !== "brig") return;
  if (record.name === "tree") recording.tree = readTreeRecord(record.payload);
  if (record.name !== "sandbox" || record.payload.escalated === true) return;
  const { image, proof } = record.payload;
  recording.image = typeof image === "string" ? image : null;
  recording.imageId = imageIdIn(proof);
}

const proofShape = z.looseObject({ imageId: z.string() });

export function imageIdIn(proof: unknown): string | null {
  return proofShape.safeParse(proof).data?.imageId ?? null;
}

function addStep({ segments, skipped }: PartialRecording, step: AgentStep): void {
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
  // The server may not be configured here, and repeating a call that acts outside of the sandbox could do
  // harm.
  if (isMcpCall(call.name) && !text.startsWith("unsupported call: ")) return "an MCP server answered it";
  if (agentTools.has(call.name)) return "other agents answered it";
  return text === "aborted" || abortedCall.test(text) ? "it was interrupted" : null;
}

/** Output of a call that a person or a failure has ended. */
const abortedCall =
  /^(?:Wall time: [\d.]+ seconds\naborted(?: by user$|: )|aborted(?: by user$| by user after | after [\d.]+s: ))/;

const agentTools: ReadonlySet<string> = new Set([...agentToolNames, ...Object.keys(agentToolAliases)]);

const mcpTools: ReadonlySet<string> = new Set([
  "list_mcp_resources",
  "list_mcp_resource_templates",
  "read_mcp_resource",
  "search_tool_bm25",
]);

/**
 * The model calls the tool of a server `<server>__<tool>`, or a name of exactly 64 characters if that would
 * be longer. No tool of brig has such a name.
 */
function isMcpCall(name: string): boolean {
  return mcpTools.has(name) || name.includes("__") || name.length === 64;
}

function isSameSetting(one: TurnSettings | null, other: TurnSettings | null): boolean {
  const key = (turn: TurnSettings | null) => JSON.stringify([turn?.cwd, turn?.sandbox_policy]);
  return key(one) === key(other);
}

/** Whether the call may have run outside the session's sandbox, with full access. */
export function hadFullAccess({ answers }: RecordedCall): boolean {
  return answers.some(({ answer, isForFullAccess }) => isForFullAccess && answer.startsWith("approved"));
}
