import type { LineFold } from "../../../sandbox/index.js";
import { appendOutput, emptyFold, foldOf, lineCountOf } from "../../../sandbox/index.js";
import type { FileChange } from "../../../tools/index.js";
import type { AgentLine } from "../../display/agent-lines.js";
import { type Block, type CommandEnd, messageBlocks } from "./block.js";
import { addText, emptyMessage, type GrowingMessage, lastPieces, piecesOf } from "./message-pieces.js";
import { readPicture } from "./picture.js";
import type { ViewEvent } from "./view-event.js";

export interface RunningCall {
  callId: string;
  name: string;
  title: string;
  startedAt: number;
  /** The last progress report of the call; empty if there was none. */
  progress: string;
  command: RunningCommand | null;
  changes: readonly FileChange[] | null;
  /** The added and removed lines of its patch. */
  edits: string;
  /** Whether the call's plan was shown, so that the call itself need not be. */
  showedPlan: boolean;
}

interface RunningCommand {
  script: string;
  output: LineFold;
  end: CommandEnd;
}

export interface ViewState {
  /** Grows only at its end. */
  finished: readonly Block[];
  turn: { startedAt: number; isStopping: boolean } | null;
  /** The message that is arriving: all of its text so far, and what of it may still change. */
  streaming: { text: string; message: GrowingMessage };
  calls: readonly RunningCall[];
  background: ReadonlyMap<string, RunningCommand>;
  /** The last outputs that were folded away, the most recent first. */
  folded: readonly { title: string; output: LineFold }[];
  isCompacting: boolean;
  /** Agents that are open, by id, in the order of their start. */
  agents: ReadonlyMap<string, AgentLine>;
  /** Notes about agents that are shown once the arriving message is complete. */
  agentNotes: readonly Block[];
}

export const initialView: ViewState = {
  finished: [],
  turn: null,
  streaming: { text: "", message: emptyMessage },
  calls: [],
  background: new Map(),
  folded: [],
  isCompacting: false,
  agents: new Map(),
  agentNotes: [],
};

export const SHOWN_LINES = 5;
export const SHOWN_EDITS = 12;
const FOLDED_OUTPUTS = 8;

/** Returns the state after an event. An event that does not fit the state is no error. */
export function reduceView(state: ViewState, event: ViewEvent): ViewState {
  const next = reduced(state, event);
  if (next.agentNotes.length === 0 || next.streaming.text !== "") return next;
  return { ...next, finished: [...next.finished, ...next.agentNotes], agentNotes: [] };
}

function reduced(state: ViewState, event: ViewEvent): ViewState {
  switch (event.kind) {
    case "turn-started":
      return { ...state, turn: { startedAt: event.at, isStopping: false }, streaming: initialView.streaming };
    case "text-delta":
      return addDelta(state, event.text);
    case "message":
      return addMessage(state, event.text);
    case "reasoning":
      return event.text.trim() === ""
        ? state
        : withBlock(state, { kind: "reasoning", text: event.text.trim() });
    case "call-started":
      return startCall(endStreaming(state), event);
    case "call-progress":
      return changeCall(state, event.callId, (call) => ({ ...call, progress: event.text }));
    case "command-started":
      return withCommand(state, event.callId, {
        script: event.script,
        output: emptyFold,
        end: { kind: "running" },
      });
    case "command-declined":
      return changeCall(state, event.callId, (call) => ({ ...call, title: `$ ${event.script}` }));
    case "command-output":
      return changeCommand(state, event.callId, (command) => ({
        ...command,
        output: appendOutput(command.output, event.text),
      }));
    case "command-ended":
      return endCommand(state, event);
    case "patch-started": {
      const { changes, patch } = event;
      return changeCall(state, event.callId, (call) => ({
        ...call,
        changes,
        edits: editsOf(patch, changes),
      }));
    }
    case "patch-ended":
      return changeCall(state, event.callId, (call) => ({ ...call, changes: event.changes }));
    case "plan-updated": {
      const { explanation, steps } = event;
      const shown = withBlock(state, { kind: "plan", explanation, steps });
      return changeCall(shown, event.callId, (call) => ({ ...call, showedPlan: true }));
    }
    case "call-ended":
      return withBlocks(endCall(state, event), picturesOf(event));
    case "agent-line":
      return changeAgent(state, event);
    case "compaction-started":
      return { ...endStreaming(state), isCompacting: true };
    case "notice":
      return { ...withBlock(endStreaming(state), event), isCompacting: false };
    case "turn-ended":
      return endTurn(state, event.how);
    default:
      return event satisfies never;
  }
}

export function withBlock(state: ViewState, block: Block): ViewState {
  return { ...state, finished: [...state.finished, block] };
}

/** Shows the last folded output in full; when called again, the one before it. */
export function unfoldLast(state: ViewState): ViewState {
  const [last, ...folded] = state.folded;
  return last === undefined ? state : { ...withBlock(state, { kind: "unfolded", ...last }), folded };
}

/** Adds the pieces of the message that are complete. The rest stays where it can still change. */
function addDelta(state: ViewState, delta: string): ViewState {
  const { streaming } = state;
  const added = streaming.text === "" ? delta.trimStart() : delta;
  if (added === "") return state;
  const { message, pieces } = addText(streaming.message, added);
  const blocks = messageBlocks(pieces, { isContinued: streaming.message.hasPieces });
  return { ...withBlocks(state, blocks), streaming: { text: streaming.text + added, message } };
}

/** Adds the part of the message that was not streamed, or all of it if it differs from what was streamed. */
function addMessage(state: ViewState, text: string): ViewState {
  const whole = text.trim();
  const { streaming } = state;
  if (whole.startsWith(streaming.text) || whole === streaming.text.trimEnd())
    return endStreaming(addDelta(state, whole.slice(streaming.text.length)));
  return withBlocks(endStreaming(state), messageBlocks(piecesOf(whole)));
}

/** Keeps what there is of a message that is over, or that broke off. */
function endStreaming(state: ViewState): ViewState {
  const { message } = state.streaming;
  const blocks = messageBlocks(lastPieces(message), { isContinued: message.hasPieces });
  return { ...withBlocks(state, blocks), streaming: initialView.streaming };
}

function withBlocks(state: ViewState, blocks: readonly Block[]): ViewState {
  return blocks.length === 0 ? state : { ...state, finished: state.finished.concat(blocks) };
}

function changeAgent(
  state: ViewState,
  { agentId, line, note }: ViewEvent & { kind: "agent-line" },
): ViewState {
  const agents = new Map(state.agents);
  if (line === null) agents.delete(agentId);
  else agents.set(agentId, line);
  return { ...state, agents, agentNotes: note === null ? state.agentNotes : [...state.agentNotes, note] };
}

function startCall(
  state: ViewState,
  { callId, name, title, at }: ViewEvent & { kind: "call-started" },
): ViewState {
  const empty = { progress: "", command: null, changes: null, edits: "", showedPlan: false };
  return { ...state, calls: [...state.calls, { callId, name, title, startedAt: at, ...empty }] };
}

/** The lines of a patch without its frame, and without the file's name if it changes a single file. */
function editsOf(patch: string, changes: readonly FileChange[]): string {
  const isFrame = changes.length > 1 ? /^\*\*\* (?:Begin|End)\b/ : /^\*\*\* /;
  const lines = patch.trim().split("\n");
  return lines
    .filter((line) => !isFrame.test(line))
    .map((line) => `${line}\n`)
    .join("");
}

function changeCall(state: ViewState, callId: string, change: (call: RunningCall) => RunningCall): ViewState {
  return { ...state, calls: state.calls.map((call) => (call.callId === callId ? change(call) : call)) };
}

function withCommand(state: ViewState, callId: string, command: RunningCommand): ViewState {
  return changeCall(state, callId, (call) => ({ ...call, command }));
}

function changeCommand(
  state: ViewState,
  callId: string,
  change: (command: RunningCommand) => RunningCommand,
): ViewState {
  const late = state.background.get(callId);
  if (late !== undefined)
    return { ...state, background: new Map(state.background).set(callId, change(late)) };
  return changeCall(state, callId, (call) =>
    call.command === null ? call : { ...call, command: change(call.command) },
  );
}

function endCommand(
  state: ViewState,
  { callId, exitCode, durationMs }: ViewEvent & { kind: "command-ended" },
): ViewState {
  const end: CommandEnd = { kind: "exited", exitCode, durationMs };
  const ended = changeCommand(state, callId, (command) => ({ ...command, end }));
  const late = ended.background.get(callId);
  if (late === undefined) return ended;
  const background = new Map(ended.background);
  background.delete(callId);
  return showCommand({ ...ended, background }, late);
}

function showCommand(state: ViewState, command: RunningCommand): ViewState {
  const shown = withBlock(state, { kind: "command", ...command });
  return rememberFolded(shown, `$ ${command.script}`, command.output);
}

function rememberFolded(state: ViewState, title: string, output: LineFold): ViewState {
  if (lineCountOf(output) <= SHOWN_LINES) return state;
  return { ...state, folded: [{ title, output }, ...state.folded].slice(0, FOLDED_OUTPUTS) };
}

/** The pictures in the result of a call, without names: the row of the call above them says which files they are. */
function picturesOf({ parts = [] }: ViewEvent & { kind: "call-ended" }): Block[] {
  return parts.flatMap((part) => {
    const picture = part.type === "input_image" ? readPicture(part.image_url, null) : null;
    return picture === null ? [] : [{ kind: "picture", picture }];
  });
}

function endCall(state: ViewState, event: ViewEvent & { kind: "call-ended" }): ViewState {
  const call = state.calls.find(({ callId }) => callId === event.callId);
  if (call === undefined) return state;
  const without = { ...state, calls: state.calls.filter((other) => other !== call) };
  if (call.command !== null) return endCommandCall(without, { ...event, command: call.command });
  const { success, content, name } = event;
  const firstLine = content.trim().split("\n", 1)[0] ?? "";
  if (call.changes !== null) {
    const edits = success ? foldOf(call.edits) : emptyFold;
    const failure = success ? "" : firstLine;
    const patched = withBlock(without, { kind: "patch", changes: call.changes, edits, success, failure });
    const title = call.changes.map(({ path }) => path).join(", ");
    return lineCountOf(edits) > SHOWN_EDITS ? rememberFolded(patched, title, edits) : patched;
  }
  // The plan, or the question and its answer, is on the screen already.
  if (success && (call.showedPlan || name === "request_user_input")) return without;
  // The output is shown with the command that started the session.
  const output = name === "write_stdin" && success ? emptyFold : foldOf(content.trimEnd());
  const shown = withBlock(without, { kind: "call", title: call.title, output, success });
  return success ? rememberFolded(shown, call.title, output) : shown;
}

/**
 * The call has ended. A command that is still running goes on in the background: its output so far is shown
 * now and the rest when it ends. If the call failed, the command was stopped.
 */
function endCommandCall(
  state: ViewState,
  { callId, success, command }: { callId: string; success: boolean; command: RunningCommand },
): ViewState {
  if (command.end.kind !== "running") return showCommand(state, command);
  if (!success) return showCommand(state, { ...command, end: { kind: "stopped" } });
  const rest = { ...command, output: emptyFold };
  return { ...showCommand(state, command), background: new Map(state.background).set(callId, rest) };
}

function endTurn(state: ViewState, how: "completed" | "failed" | "interrupted"): ViewState {
  const ended = { ...endStreaming(state), turn: null, calls: [], isCompacting: false };
  if (how !== "interrupted") return ended;
  return withBlock(ended, { kind: "notice", tone: "warning", text: "interrupted" });
}
