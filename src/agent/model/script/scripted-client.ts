import { BrigError } from "../../../errors.js";
import { suggest } from "../../../lib/suggest.js";
import { isToolOutput, outputText, type ResponseItem, type ToolCallItem } from "../items.js";
import type { ModelClient, ModelEvent, ModelRequest } from "../model-client.js";
import type { Expectation, Script, ScriptedCall, ScriptStep } from "./script.js";

const SHOWN_OUTPUT_CHARS = 4000;

/**
 * Plays one step for each request, whatever it contains. Error: `model.script` for an unexpected output of a
 * call, or a tool that does not exist, unless something is expected of that call.
 */
export function createScriptedClient(script: Script): ModelClient {
  const captures = new Map<string, string>();
  let next = 0;
  return {
    provider: "scripted",
    model: "scripted",
    maxStreamRetries: 0,
    async *stream(request, signal) {
      signal.throwIfAborted();
      const index = next++;
      const step = script.steps[index];
      if (step === undefined) throw outOfSteps(script);
      checkExpectations({ script, step, index, request, captures });
      refuseUnknownTools({ script, step, index, request });
      yield* play(step, index, captures);
    },
  };
}

function* play(step: ScriptStep, index: number, captures: ReadonlyMap<string, string>): Iterable<ModelEvent> {
  if (step.text !== undefined) {
    yield { kind: "text-delta", text: step.text };
    const content = [{ type: "output_text" as const, text: step.text }];
    yield { kind: "item", item: { type: "message", role: "assistant", content } };
  }
  for (const [position, call] of (step.calls ?? []).entries())
    yield { kind: "item", item: callItem(call, callId(index, position), captures) };
  yield { kind: "completed", usage: null };
}

interface Check {
  script: Script;
  step: ScriptStep;
  index: number;
  request: ModelRequest;
  captures: Map<string, string>;
}

function checkExpectations({ script, step, index, request, captures }: Check): void {
  for (const [position, expectation] of (step.expect ?? []).entries()) {
    const output = outputOf(request.input, callId(index - 1, position));
    const unmet = unmetPart(expectation, output);
    if (unmet !== null)
      throw new BrigError(
        `${script.file}:${step.expectLines[position] ?? step.line}: the output of the previous call ${unmet}\n` +
          `--- output ---\n${shortened(output)}\n--- end of output ---`,
        { code: "model.script", hint: "the sandbox did not do what the script expects" },
      );
    const groups = expectation.matches?.exec(output)?.groups ?? {};
    for (const [name, value] of Object.entries(groups)) captures.set(name, value);
  }
}

/** A misspelt tool would otherwise only be told to a model that reads nothing. */
function refuseUnknownTools({ script, step, index, request }: Omit<Check, "captures">): void {
  const before = script.steps[index - 1];
  for (const [position, { tool }] of (before?.calls ?? []).entries()) {
    if (step.expect?.[position] !== undefined) continue;
    const output = outputOf(request.input, callId(index - 1, position));
    if (output !== `unsupported call: ${tool}` && output !== `unsupported custom tool call: ${tool}`)
      continue;
    const meant = suggest(
      tool,
      request.tools.flatMap(({ name }) => name ?? []),
    );
    throw new BrigError(`${script.file}:${before?.line}: there is no tool ${JSON.stringify(tool)}`, {
      code: "model.script",
      hint: meant === null ? "brig tools lists them" : `did you mean ${meant}?`,
    });
  }
}

/** What is wrong with the output, as words that follow "the output"; null if it is as expected. */
function unmetPart(expectation: Expectation, output: string): string | null {
  const missing = expectation.contains?.find((text) => !output.includes(text));
  if (missing !== undefined) return `does not contain ${JSON.stringify(missing)}`;
  const unwanted = expectation.notContains?.find((text) => output.includes(text));
  if (unwanted !== undefined) return `contains ${JSON.stringify(unwanted)}`;
  if (expectation.matches !== undefined && !expectation.matches.test(output))
    return `does not match ${String(expectation.matches)}`;
  if (expectation.exitCode === undefined) return null;
  const exitCode = exitCodeOf(output);
  if (exitCode === expectation.exitCode) return null;
  return exitCode === null
    ? `reports no exit code, and ${expectation.exitCode} was expected`
    : `reports exit code ${exitCode}, and ${expectation.exitCode} was expected`;
}

/** Reads only what comes before the command's own output, which could contain the same words. */
function exitCodeOf(output: string): number | null {
  const [head = ""] = output.split("\nOutput:\n", 1);
  const plain = /^Exit code: (\d+)$/m.exec(head) ?? /^Process exited with code (\d+)$/m.exec(head);
  const structured = /"metadata":\{"exit_code":(\d+),"duration_seconds":[\d.]+\}\}$/.exec(output);
  const digits = output.startsWith('{"output":') ? structured?.[1] : plain?.[1];
  return digits === undefined ? null : Number(digits);
}

function outputOf(input: readonly ResponseItem[], id: string): string {
  const item = input.filter(isToolOutput).findLast(({ call_id }) => call_id === id);
  return item === undefined ? "" : outputText(item);
}

function callItem(call: ScriptedCall, id: string, captures: ReadonlyMap<string, string>): ToolCallItem {
  const args = withCaptures(call.args, captures);
  return typeof args === "string"
    ? { type: "custom_tool_call", call_id: id, name: call.tool, input: args }
    : { type: "function_call", call_id: id, name: call.tool, arguments: JSON.stringify(args) };
}

/** Replaces each `${name}`. A value that is only a placeholder becomes a number if its text is one. */
function withCaptures(value: unknown, captures: ReadonlyMap<string, string>): unknown {
  if (Array.isArray(value)) return value.map((item) => withCaptures(item, captures));
  if (typeof value === "object" && value !== null)
    return Object.fromEntries(
      Object.entries(value).map(([key, inner]) => [key, withCaptures(inner, captures)]),
    );
  if (typeof value !== "string") return value;
  const whole = /^\$\{(\w+)\}$/.exec(value)?.[1];
  const captured = whole === undefined ? undefined : captures.get(whole);
  if (captured !== undefined && /^\d+$/.test(captured)) return Number(captured);
  return value.replaceAll(/\$\{(\w+)\}/g, (placeholder, name: string) => captures.get(name) ?? placeholder);
}

function callId(step: number, position: number): string {
  return `call_${step + 1}_${position + 1}`;
}

function shortened(output: string): string {
  if (output.length <= SHOWN_OUTPUT_CHARS) return output;
  const half = SHOWN_OUTPUT_CHARS / 2;
  const cut = output.length - SHOWN_OUTPUT_CHARS;
  return `${output.slice(0, half)}\n… ${cut} characters not shown …\n${output.slice(-half)}`;
}

function outOfSteps({ file, steps }: Script): BrigError {
  return new BrigError(`${file}: the script has only ${steps.length} steps, and the run needs another one`, {
    code: "model.script",
  });
}
