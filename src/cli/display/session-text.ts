import type {
  AgentStep,
  CallOutput,
  MessageItem,
  MessageStep,
  SessionMeta,
  SessionStep,
  StepCall,
} from "../../agent/index.js";
import { readStructuredOutput } from "../../agent/index.js";
import { neutralise, neutraliseLine } from "../../lib/terminal/terminal.js";
import { formatDuration } from "../../lib/time/durations.js";
import { changedText } from "./call-text.js";

/** Only this much of longer summaries, inputs and outputs is shown. */
const SHOWN_LINES = 12;
const SHOWN_CHARS = 2000;
/** Instructions within these limits are shown in full, longer ones only with the beginning of the first line. */
const SHORT_LINES = 3;
const SHORT_CHARS = 200;
const NAME_CHARS = 60;

/** The head of a transcript, safe for a terminal. */
export function shownSession({ id, cwd, timestamp, originator, cli_version, ...meta }: SessionMeta): string {
  const by = [originator, cli_version].filter((part) => part).join(" ");
  const parts = [
    `session ${id}`,
    ...(timestamp ? [`started ${timestamp}`] : []),
    ...(cwd ? [`in ${cwd}`] : []),
    ...(by === "" ? [] : [`by ${by}`]),
    ...(meta.forked_from_id ? [`forked from ${meta.forked_from_id}`] : []),
  ];
  return `${neutraliseLine(parts.join(" · "))}\n`;
}

/** One step of a transcript, safe for a terminal. */
export function shownStep(step: SessionStep, { full }: { full: boolean }): string {
  const lines = step.source === "agent" ? agentLines(step, full) : spokenLines(step, full);
  return `\n[${step.number}] ${neutraliseLine(heading(step))}\n${lines.map((line) => `${line}\n`).join("")}`;
}

function heading(step: SessionStep): string {
  const copied = step.isCopied ? " (copied)" : "";
  const time = step.timestamp === null ? "" : ` · ${step.timestamp}`;
  if (step.source !== "agent") return `${step.source}${copied}${time}`;
  const { model, usage, ending } = step;
  const tokens = usage === null ? "" : ` · ${usage.inputTokens} tokens in, ${usage.outputTokens} out`;
  return `agent${copied}${model === null ? "" : ` · ${model}`}${time}${tokens}${ending === null ? "" : ` · ${ending}`}`;
}

function spokenLines({ content, source, isCompaction }: MessageStep, full: boolean): string[] {
  const parts = content.map(partText);
  if (source === "user" || full) return indented(parts.join("\n"));
  return parts.flatMap((text) => (isCompaction ? folded(text, full) : instructionLines(text)));
}

/** Long instructions are hardly ever of interest, so only enough is shown to recognise them. */
function instructionLines(text: string): string[] {
  const lines = indented(text);
  const [first = ""] = lines;
  if (lines.length <= SHORT_LINES && text.length <= SHORT_CHARS) return lines;
  const name = first.trim().slice(0, NAME_CHARS);
  return [`    ${name} … ${text.length - name.length} characters not shown; --full shows them`];
}

function partText(part: MessageItem["content"][number]): string {
  if (part.type === "input_image") return "(an image)";
  return part.type === "refusal" ? part.refusal : part.text;
}

function agentLines({ reasoning, text, calls }: AgentStep, full: boolean): string[] {
  return [
    ...(reasoning === "" ? [] : folded(reasoning, full).map((line) => `  ~${line.slice(1)}`)),
    ...(text === "" ? [] : indented(text)),
    ...calls.flatMap((call) => callLines(call, full)),
  ];
}

function callLines(call: StepCall, full: boolean): string[] {
  const { name, input, output, cost, point } = call;
  const duration = typeof cost?.duration_ms === "number" ? ` · ${formatDuration(cost.duration_ms)}` : "";
  const [first = "", ...rest] = folded(input, full);
  const changed = point === null ? [] : [`    changed ${changedText(point)}`];
  const shown = output === null ? ["    (no output)"] : folded(outputText(output), full);
  return [
    `  • ${neutraliseLine(name)}${duration} ${first.trimStart()}`,
    ...rest,
    ...shown.map((line) => `    │ ${line.replace(/^ {4}/, "")}`),
    ...changed,
  ];
}

function outputText(output: CallOutput): string {
  const structured = typeof output === "string" ? readStructuredOutput(output) : null;
  if (structured !== null) return `exit code ${structured.exitCode}\n${structured.text}`;
  if (typeof output === "string") return output;
  return output.map((part) => (part.type === "input_text" ? part.text : "(an image)")).join("\n");
}

function folded(text: string, full: boolean): string[] {
  if (full) return indented(text);
  const cut = text.slice(0, SHOWN_CHARS);
  const lines = indented(cut);
  const shown = lines.slice(0, SHOWN_LINES);
  const left = text.length - cut.length + lines.slice(SHOWN_LINES).join("\n").length;
  return left <= 0 ? lines : [...shown, `    … ${left} characters not shown; --full shows them`];
}

function indented(text: string): string[] {
  return neutralise(text)
    .trimEnd()
    .split("\n")
    .map((line) => `    ${line}`);
}
