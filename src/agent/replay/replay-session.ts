import { BrigError } from "../../errors.js";
import type { ApprovalPolicy } from "../../sandbox/index.js";
import { parseApprovalPolicy } from "../../sandbox/index.js";
import type { AskedUser, ToolGates } from "../../tools/index.js";
import type { AgentSandbox, SandboxSource } from "../agent-sandbox.js";
import type { ApprovalAnswer, Approver } from "../approvals/approvals.js";
import { openConversation } from "../conversation.js";
import type { Conversation } from "../conversation-options.js";
import { type CallOutput, outputText } from "../model/items.js";
import type { TurnSettings } from "../session/read/session-lines.js";
import {
  comparedTreeLimits,
  describeTree,
  type TreeDifference,
  treeDifferences,
} from "../session/read/session-tree.js";
import type { SessionSetting } from "../session/setting.js";
import type { SessionLog } from "../session/write/session-file.js";
import type { AgentListener } from "../turn/events.js";
import { createReplayClient } from "./replay-client.js";
import { pathAdapter } from "./replay-compare.js";
import { type CallDifference, compareCalls } from "./replay-outputs.js";
import {
  hadFullAccess,
  imageIdIn,
  type RecordedCall,
  type RecordedSegment,
  type Recording,
} from "./replay-recording.js";

export interface ReplayOptions {
  recording: Recording;
  /** Replaces the directory the session worked in. Absolute path inside the sandbox. */
  directory: string;
  /** Opens a sandbox with the settings of a turn. */
  openSandbox(turn: TurnSettings | null): SandboxSource;
  /** Opens a sandbox for calls that ran with full access. Default: none; those calls are skipped. */
  openFullAccess?: ((turn: TurnSettings | null) => () => Promise<AgentSandbox>) | undefined;
  signal?: AbortSignal | undefined;
  onEvent?: AgentListener | undefined;
}

export interface ReplayReport {
  sessionId: string;
  /** The number of calls that were run again. */
  calls: number;
  differences: CallDifference[];
  skipped: { step: number; name: string; reason: string }[];
  tree:
    | { kind: "same" }
    | { kind: "different"; differences: TreeDifference[] }
    | { kind: "not compared"; reason: string };
  /** The kinds of differences that do not count, because they occur in every run. */
  normalised: string[];
  /** Other possible reasons for differences. */
  notes: string[];
}

export function isSame({ differences, tree }: ReplayReport): boolean {
  return differences.length === 0 && tree.kind !== "different";
}

/**
 * Runs a session's calls again, in their order, and compares the outputs. Failures of the sandbox are thrown.
 */
export async function replaySession(options: ReplayOptions): Promise<ReplayReport> {
  const { directory } = options;
  const recording =
    options.openFullAccess === undefined ? withinSandbox(options.recording) : options.recording;
  const before = workDirectory(recording);
  const outputs = new Map<string, CallOutput>();
  const back = pathAdapter(directory, before);
  const notes = new Set<string>();
  let tree: ReplayReport["tree"] = { kind: "not compared", reason: "the session made no calls" };
  for (const segment of recording.segments) {
    const conversation = openSegment(segment, { options, outputs, before });
    try {
      const turn = await conversation.runTurn({ prompt: "replay", signal: options.signal });
      options.signal?.throwIfAborted();
      if (turn.error !== undefined) throw turn.error;
      await conversation.tools.close();
      if (await hasOtherImage(conversation, recording))
        notes.add(`the image ${recording.image ?? ""} is not what it was when the session ran`);
      if (segment === recording.segments.at(-1)) tree = await compareTree(conversation, options);
    } finally {
      await conversation.close();
    }
  }
  const calls = recording.segments.flatMap(({ responses }) => responses.flat());
  return {
    sessionId: recording.meta.id,
    calls: calls.length,
    ...compareCalls(calls, { outputs, back }),
    skipped: recording.skipped.map(({ call: { step, name }, reason }) => ({ step, name, reason })),
    tree,
    notes: [...notes],
  };
}

/** False if either image is unknown. */
async function hasOtherImage(conversation: Conversation, { imageId }: Recording): Promise<boolean> {
  const now = imageIdIn((await conversation.sandbox).proof);
  return imageId !== null && now !== null && now !== imageId;
}

export function workDirectory({ meta, segments }: Recording): string {
  return segments[0]?.turn?.cwd ?? meta.cwd ?? "/";
}

function openSegment(
  { turn, responses }: RecordedSegment,
  about: { options: ReplayOptions; outputs: Map<string, CallOutput>; before: string },
): Conversation {
  const { options, outputs, before } = about;
  const adapt = pathAdapter(before, options.directory);
  return openConversation({
    model: createReplayClient(responses, { model: turn?.model ?? "replay", adapt }),
    sandbox: options.openSandbox(turn),
    setting: settingOf(turn, adapt(turn?.cwd ?? before)),
    toolOptions: { gates: gatesOf(responses.flat()), user: recordedUser(responses.flat()) },
    truncation: turn?.truncation_policy ?? undefined,
    // No model reads the conversation, so it is never compacted.
    compaction: { contextWindowTokens: Number.MAX_SAFE_INTEGER, autoCompactTokens: Number.MAX_SAFE_INTEGER },
    session: collecting(outputs),
    onEvent: options.onEvent,
    approver: recordedApprover(responses.flat()),
    escalatedSandbox: options.openFullAccess?.(turn) ?? noFullAccess,
  });
}

/**
 * Stands for the escalated sandbox, so that what a person declined is asked about and declined again. Nothing runs in it.
 */
function noFullAccess(): Promise<AgentSandbox> {
  const error = new BrigError("a replayed call needs full access, which the replay does not have", {
    code: "policy.not-enforced",
  });
  return Promise.reject(error);
}

function withinSandbox(recording: Recording): Recording {
  const all = recording.segments.flatMap(({ responses }) => responses.flat());
  const outside = all.filter(hadFullAccess);
  const reason = "it may have run with full access";
  const skipped = [...recording.skipped, ...outside.map((call) => ({ call, reason }))];
  const segments = recording.segments.flatMap(({ turn, responses }) => {
    const within = responses.map((calls) => calls.filter((call) => !outside.includes(call)));
    // A response without calls would end the turn too early.
    const left = within.filter((calls) => calls.length > 0);
    return left.length === 0 ? [] : [{ turn, responses: left }];
  });
  return { ...recording, segments, skipped };
}

/** Gives a person's recorded answers; a question that was not asked then is denied. */
function recordedApprover(calls: readonly RecordedCall[]): Approver {
  const answers = new Map(calls.map((call) => [call.replayId, call.answers.map(({ answer }) => answer)]));
  return {
    ask({ callId, prefix }) {
      const answer = answers.get(callId ?? "")?.shift();
      if (answer === "approved_prefix" && prefix !== null) return Promise.resolve({ approvedPrefix: prefix });
      const isApproved = answer === "approved" || answer === "approved_for_session";
      return Promise.resolve<ApprovalAnswer>(isApproved ? answer : "denied");
    },
  };
}

function settingOf(turn: TurnSettings | null, cwd: string): SessionSetting {
  const policy = turn?.sandbox_policy;
  const hasNetwork = policy?.network_access === true || policy?.type === "danger-full-access";
  return {
    cwd,
    sandboxMode: policy?.type ?? "workspace-write",
    network: { kind: hasNetwork ? "full" : "none" },
    approvalPolicy: approvalPolicyOf(turn),
    writableRoots: [],
    shell: turn?.shell ?? "bash",
    timezone: turn?.timezone ?? "UTC",
  };
}

function approvalPolicyOf(turn: TurnSettings | null): ApprovalPolicy {
  const parsed = parseApprovalPolicy(turn?.approval_policy ?? "never");
  return parsed.kind === "parsed" ? parsed.policy : "never";
}

/** The tools that were on, as far as the outputs of the calls show it. */
function gatesOf(calls: readonly RecordedCall[]): ToolGates {
  const refused = new Set(
    calls.flatMap((call) => /^(\w+) is disabled in this session/.exec(outputText(call))?.[1] ?? []),
  );
  const isOn = (name: string) => !refused.has(name);
  return {
    read_file: isOn("read_file"),
    list_dir: isOn("list_dir"),
    grep_files: isOn("grep_files"),
    view_image: isOn("view_image"),
    update_plan: isOn("update_plan"),
    js_repl: isOn("js_repl") && calls.some(({ name }) => name.startsWith("js_repl")),
    apply_patch: isOn("apply_patch"),
  };
}

/** Gives a person's recorded answers, in order; undefined if nobody could be asked. */
function recordedUser(calls: readonly RecordedCall[]): AskedUser | undefined {
  const asked = calls.filter(({ name }) => name === "request_user_input");
  if (asked.some((call) => outputText(call).startsWith("request_user_input is "))) return undefined;
  let next = 0;
  return {
    ask: () => Promise.resolve(answersIn(outputText(asked[next++] ?? { output: "" }))),
  };
}

function answersIn(output: string): Record<string, readonly string[]> | null {
  try {
    const { answers } = JSON.parse(output) as { answers: Record<string, { answers: readonly string[] }> };
    return Object.fromEntries(Object.entries(answers).map(([id, given]) => [id, given.answers]));
  } catch {
    return null;
  }
}

/** A log that keeps only the outputs of calls. */
function collecting(outputs: Map<string, CallOutput>): SessionLog {
  return {
    path: null,
    trouble: null,
    append({ type, payload }) {
      const { type: kind, call_id: callId, output } = payload;
      const isOutput = kind === "function_call_output" || kind === "custom_tool_call_output";
      if (type === "response_item" && isOutput && typeof callId === "string")
        outputs.set(callId, output as CallOutput);
    },
    close: () => undefined,
  };
}

async function compareTree(
  conversation: Conversation,
  { recording, directory, signal }: ReplayOptions,
): Promise<ReplayReport["tree"]> {
  const { tree } = recording;
  if (tree === null) return { kind: "not compared", reason: "the session did not record it" };
  if (tree.kind === "left-out")
    return { kind: "not compared", reason: `the session did not record it: ${tree.reason}` };
  const sandbox = await conversation.sandbox;
  const now = await describeTree(sandbox, directory, { limits: comparedTreeLimits, signal });
  if (now.kind === "left-out") return { kind: "not compared", reason: now.reason };
  const differences = treeDifferences(tree.entries, now.entries);
  return differences.length === 0 ? { kind: "same" } : { kind: "different", differences };
}
