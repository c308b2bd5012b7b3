import { appendOutput, emptyFold, foldOf, type LineFold, lineCountOf } from "../../../output/line-fold.js";
import type { FileChange } from "../../../tools/review/action.js";
import type { Block, CommandEnd } from "./block.js";
import type { ViewEvent } from "./view-event.js";

/** A call that has not ended. */
export interface RunningCall {
  callId: string;
  name: string;
  title: string;
  startedAt: number;
  command: RunningCommand | null;
  changes: readonly FileChange[] | null;
  /** What its patch takes and gives, line by line. */
  edits: string;
  /** It is the plan itself that was shown. */
  showedPlan: boolean;
}

interface RunningCommand {
  script: string;
  output: LineFold;
  end: CommandEnd;
}

/** What a person sees of a session, besides what they type. */
export interface ViewState {
  /** Grows only at its end. */
  finished: readonly Block[];
  turn: { startedAt: number; isStopping: boolean } | null;
  /** How much of the message that is coming was seen, and its last line as far as it goes. */
  saying: { seen: string; line: string };
  calls: readonly RunningCall[];
  /** Commands that outlived their calls. */
  background: ReadonlyMap<string, RunningCommand>;
  /** The last outputs that were folded away, the latest first. */
  folded: readonly { title: string; output: LineFold }[];
  isSandboxReady: boolean;
  /** The model sums up what was said. */
  isCompacting: boolean;
}

export const initialView: ViewState = {
  finished: [],
  turn: null,
  saying: { seen: "", line: "" },
  calls: [],
  background: new Map(),
  folded: [],
  isSandboxReady: false,
  isCompacting: false,
};

/** Lines of an output that stay on the screen. */
export const SHOWN_LINES = 5;
/** Lines of a patch that do. */
export const SHOWN_EDITS = 12;
/** Outputs that can be unfolded again. */
const FOLDED_OUTPUTS = 8;

/** The state after an event; also where the event is unexpected. */
export function reduceView(state: ViewState, event: ViewEvent): ViewState {
  switch (event.kind) {
    case "sandbox-ready":
      return { ...state, isSandboxReady: true };
    case "turn-started":
      return { ...state, turn: { startedAt: event.at, isStopping: false }, saying: initialView.saying };
    case "said-piece":
      return hearPiece(state, event.text);
    case "said":
      return hearMessage(state, event.text);
    case "thought":
      return event.text.trim() === ""
        ? state
        : withBlock(state, { kind: "thought", text: event.text.trim() });
    case "call-started":
      return startCall(endSaying(state), event);
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
      return endCall(state, event);
    case "compaction-started":
      return { ...endSaying(state), isCompacting: true };
    case "notice":
      return { ...withBlock(endSaying(state), event), isCompacting: false };
    case "turn-ended":
      return endTurn(state, event.how);
    default:
      return event satisfies never;
  }
}

/** Puts something on the screen for good. */
export function withBlock(state: ViewState, block: Block): ViewState {
  return { ...state, finished: [...state.finished, block] };
}

/** Shows in full what was folded last, and the next time what was folded before that. */
export function unfoldLast(state: ViewState): ViewState {
  const [last, ...folded] = state.folded;
  return last === undefined ? state : { ...withBlock(state, { kind: "unfolded", ...last }), folded };
}

/** Whole lines go on the screen at once; the one that has not ended stays where it can change. */
function hearPiece(state: ViewState, piece: string): ViewState {
  const { saying } = state;
  const text = saying.seen === "" ? piece.trimStart() : saying.line + piece;
  if (text === "") return state;
  const lines = text.split("\n");
  const line = lines.pop() ?? "";
  const seen = saying.seen + (saying.seen === "" ? piece.trimStart() : piece);
  const shown = lines.length === 0 ? state : withBlock(state, said(lines, isFirstLine(saying)));
  return { ...shown, saying: { seen, line } };
}

function isFirstLine({ seen }: ViewState["saying"]): boolean {
  return !seen.includes("\n");
}

/** The whole message: most of it was seen already, unless it came another way than was announced. */
function hearMessage(state: ViewState, text: string): ViewState {
  const whole = text.trim();
  const { saying } = state;
  const isKnown = whole.startsWith(saying.seen.trimEnd());
  const before = isKnown ? state : endSaying(state);
  const rest = isKnown ? saying.line + whole.slice(saying.seen.length) : whole;
  const ended = { ...before, saying: initialView.saying };
  if (rest.trim() === "") return ended;
  return withBlock(ended, said(rest.trimEnd().split("\n"), !isKnown || isFirstLine(saying)));
}

/** A message that broke off: what there was of it stays. */
function endSaying(state: ViewState): ViewState {
  const { line } = state.saying;
  if (state.saying.seen === "") return state;
  const ended = { ...state, saying: initialView.saying };
  return line.trim() === "" ? ended : withBlock(ended, said([line], isFirstLine(state.saying)));
}

function said(lines: readonly string[], isFirst: boolean): Block {
  return { kind: "said", lines, isFirst };
}

function startCall(
  state: ViewState,
  { callId, name, title, at }: ViewEvent & { kind: "call-started" },
): ViewState {
  const empty = { command: null, changes: null, edits: "", showedPlan: false };
  return { ...state, calls: [...state.calls, { callId, name, title, startedAt: at, ...empty }] };
}

/** The lines of a patch without its frame; without the name of its file too where there is but one. */
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
  // Whoever asked has shown the question and the answer.
  if (success && (call.showedPlan || name === "request_user_input")) return without;
  // What a session prints is shown under the command that started it.
  const output = name === "write_stdin" && success ? emptyFold : foldOf(content.trimEnd());
  const shown = withBlock(without, { kind: "call", title: call.title, output, success });
  return success ? rememberFolded(shown, call.title, output) : shown;
}

/**
 * A command that goes on has shown what it had to show so far; the rest comes when it ends. One whose call was ended ends with it.
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
  const ended = { ...endSaying(state), turn: null, calls: [], isCompacting: false };
  if (how !== "interrupted") return ended;
  return withBlock(ended, { kind: "notice", tone: "warning", text: "interrupted" });
}
