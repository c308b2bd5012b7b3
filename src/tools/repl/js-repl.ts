import { z } from "zod";
import { AnySignal } from "../../lib/time/any-signal.js";
import type { OutputPart } from "../../sandbox/index.js";
import { truncateOutput } from "../../sandbox/index.js";
import { defineTool } from "../define-tool.js";
import type { Tool, ToolActivity, ToolCallOptions, ToolOutput } from "../tool.js";
import { failure } from "../tool-failure.js";
import type { OutputLimit, Reviewed, WorkingDirectory } from "../tool-needs.js";
import { CellDeadline } from "./cell-deadline.js";
import { readCell } from "./cell-source.js";
import type { CellOutcome } from "./js-kernel.js";
import type { KernelSlot } from "./kernel-slot.js";

const name = "js_repl";
const description =
  "Runs JavaScript in a Node process that remembers what earlier calls declared. The input is the source as it is: no JSON, no " +
  "quotes, no markdown fence. Top-level await works, static imports do not: use `await import(…)`. What is printed and the value of " +
  "the last expression come back. `codex.tool(name, args)` calls another tool, `await codex.emitImage(dataUrl)` shows you a picture, " +
  "and `codex.cwd`, `codex.homeDir` and `codex.tmpDir` are directories. A first line `// codex-js-repl: timeout_ms=15000` changes " +
  "the time limit of 30 seconds; a call that exceeds it loses the process and all that was declared.";

/** Excludes text that starts like JSON, a string or a markdown fence. */
const grammar = `start: SOURCE
SOURCE: /[ \\t\\r\\n]*([^ \\t\\r\\n{"\`]|\`[^\`]|\`\`[^\`])(.|\\n)*/
`;

const TIMEOUT = "js_repl execution timed out; kernel reset, rerun your request";
const imageUrl = /^data:image\/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+={0,2}$/;
const MAX_IMAGE_CHARS = 20 * 1024 * 1024;

export interface JsReplNeeds extends WorkingDirectory, Reviewed, OutputLimit, KernelAccess {
  /** Calls another tool for the model. Its output says if the tool is off or the call fails. */
  callTool(name: string, args: unknown, call: ToolCallOptions): Promise<ToolOutput>;
}

interface KernelAccess {
  readonly jsKernel: KernelSlot;
}

export function jsReplTool(needs: JsReplNeeds): Tool<ToolOutput, { input: string }> {
  return defineTool({
    name,
    description,
    parameters: z.object({ input: z.string().describe("The JavaScript source.") }),
    parameterAliases: { code: "input" },
    supportsParallel: false,
    isFreeform: true,
    spec: {
      type: "custom",
      name,
      description,
      format: { type: "grammar", syntax: "lark", definition: grammar },
    },
    async run({ input }, call) {
      const cell = readCell(input);
      if (cell.kind === "invalid") return failure(cell.reason);
      const refusal = await refusedCell(needs, cell.source, call);
      if (refusal !== null) return failure(refusal);
      using deadline = new CellDeadline(cell.timeoutMs);
      using ends = new AnySignal([call.signal, deadline.signal]);
      const onActivity = (activity: ToolActivity) => {
        deadline.note(activity);
        call.onActivity?.(activity);
      };
      const outcome = await runCell(needs, cell.source, {
        ...call,
        signal: ends.signal,
        onActivity,
        deadline: deadline.signal,
      });
      return outcome === null ? failure(TIMEOUT) : cellOutput(outcome, needs);
    },
  });
}

export function jsReplResetTool(needs: KernelAccess): Tool<ToolOutput, Record<string, never>> {
  return defineTool({
    name: "js_repl_reset",
    description: "Ends the Node process of js_repl; the next call starts a new one that remembers nothing.",
    parameters: z.object({}),
    supportsParallel: false,
    async run() {
      await needs.jsKernel.reset();
      return { content: "js_repl kernel reset", success: true };
    },
  });
}

/** Reviews a cell as a command, since it can start any program. It always runs in the sandbox. */
async function refusedCell(
  needs: WorkingDirectory & Reviewed,
  source: string,
  call: ToolCallOptions,
): Promise<string | null> {
  const argv = ["node", "--eval", source];
  const escalation = { isAsked: false, justification: null, prefixRule: null };
  const cell = { kind: "command" as const, tool: name, argv, cwd: needs.cwd, takesInput: true, escalation };
  const verdict = await needs.review.review(cell, call);
  if (verdict.kind === "run") return null;
  return verdict.reason.by === "user" ? "js_repl cell rejected by user" : verdict.reason.text;
}

/** Null if the cell timed out. */
async function runCell(
  needs: JsReplNeeds,
  source: string,
  call: ToolCallOptions & { signal: AbortSignal; deadline: AbortSignal },
): Promise<CellOutcome | null> {
  const { signal, deadline } = call;
  try {
    const kernel = await needs.jsKernel.open();
    const callTool = (tool: string, args: unknown) => callFromCell(needs, { tool, args }, call);
    return await kernel.run(source, { signal, callTool });
  } catch (error) {
    await needs.jsKernel.reset();
    if (deadline.aborted && error === deadline.reason) return null;
    throw error;
  }
}

async function callFromCell(
  needs: JsReplNeeds,
  { tool, args }: { tool: string; args: unknown },
  { signal, onActivity, origin }: ToolCallOptions,
): Promise<ToolOutput> {
  if (tool === name || tool === "js_repl_reset") return failure("js_repl cannot invoke itself");
  return await needs.callTool(tool, args, { signal, onActivity, origin });
}

function cellOutput({ success, output, images }: CellOutcome, { truncation }: OutputLimit): ToolOutput {
  const text = truncateOutput(output, truncation);
  const shown = images.filter((url) => url.length <= MAX_IMAGE_CHARS && imageUrl.test(url));
  const refused = images.length - shown.length;
  const note =
    refused === 0
      ? ""
      : `${refused} of the images were no PNG, JPEG, GIF or WebP data URLs of at most 20 MiB\n`;
  const content = text + note;
  if (shown.length === 0) return { content, success };
  const parts: OutputPart[] = shown.map((url) => ({ type: "input_image", image_url: url, detail: "high" }));
  return {
    content: `${content}[${shown.length} ${shown.length === 1 ? "image" : "images"}]`,
    success,
    parts: content === "" ? parts : [{ type: "input_text", text: content }, ...parts],
  };
}
