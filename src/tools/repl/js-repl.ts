import { z } from "zod";
import { AnySignal } from "../../lib/time/any-signal.js";
import type { OutputPart } from "../../sandbox/index.js";
import { truncateOutput } from "../../sandbox/index.js";
import { defineTool, type OutputLimit, type Reviewed, type WorkingDirectory } from "../define-tool.js";
import { failure, type Tool, type ToolActivity, type ToolCallOptions, type ToolOutput } from "../tool.js";
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

/** `reason` is for the model. */
type CellSource = { kind: "cell"; source: string; timeoutMs: number } | { kind: "invalid"; reason: string };

const DEFAULT_TIMEOUT_MS = 30_000;
const MAX_TIMEOUT_MS = 24 * 60 * 60 * 1000;
const pragma = /^\s*\/\/ *codex-js-repl:(.*)$/;

/** Reads a cell, whose first line may be `// codex-js-repl: timeout_ms=15000`. */
function readCell(input: string): CellSource {
  const [first = "", ...rest] = input.split("\n");
  const options = pragma.exec(first)?.[1];
  const source = options === undefined ? input : rest.join("\n");
  const timeout = options === undefined ? DEFAULT_TIMEOUT_MS : readTimeout(options.trim());
  if (typeof timeout === "string") return { kind: "invalid", reason: timeout };
  const reason = whyNoSource(source, { hasPragma: options !== undefined });
  return reason === null
    ? { kind: "cell", source, timeoutMs: Math.min(timeout, MAX_TIMEOUT_MS) }
    : { kind: "invalid", reason };
}

function readTimeout(options: string): number | string {
  const [, key, value = ""] = /^(\w+)=(\S*)$/.exec(options) ?? [];
  if (key !== "timeout_ms")
    return `js_repl pragma takes timeout_ms=<milliseconds> and nothing else; got \`${options}\``;
  return /^[1-9]\d{0,9}$/.test(value)
    ? Number(value)
    : `js_repl pragma timeout_ms must be a positive whole number; got \`${value}\``;
}

function whyNoSource(source: string, { hasPragma }: { hasPragma: boolean }): string | null {
  const text = source.trim();
  if (text === "")
    return hasPragma
      ? "js_repl pragma must be followed by JavaScript on the next lines"
      : "js_repl expects raw JavaScript, and the input is empty";
  if (text.startsWith("```"))
    return "js_repl expects raw JavaScript: leave out the markdown fence around the source";
  if (isJson(text))
    return "js_repl expects raw JavaScript: send the source itself, not JSON and not a quoted text";
  return null;
}

/** Only objects and strings count: a number or a list is plausible JavaScript, too. */
function isJson(text: string): boolean {
  if (!/^["{]/.test(text)) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** The time limit of a cell. It pauses while a person answers an approval question of the cell. */
class CellDeadline implements Disposable {
  readonly #over = new AbortController();
  #leftMs: number;
  #startedAt = 0;
  #timer: NodeJS.Timeout | null = null;
  #questions = 0;

  constructor(timeoutMs: number) {
    this.#leftMs = timeoutMs;
    this.#start();
  }

  get signal(): AbortSignal {
    return this.#over.signal;
  }

  note({ kind }: ToolActivity): void {
    if (kind === "approval-requested" && this.#questions++ === 0) this.#pause();
    if (kind === "approval-answered" && --this.#questions === 0) this.#start();
  }

  [Symbol.dispose](): void {
    this.#pause();
  }

  #start(): void {
    this.#startedAt = performance.now();
    this.#timer = setTimeout(() => {
      this.#over.abort(new DOMException("the cell took too long", "TimeoutError"));
    }, this.#leftMs);
  }

  #pause(): void {
    if (this.#timer === null) return;
    clearTimeout(this.#timer);
    this.#timer = null;
    this.#leftMs = Math.max(this.#leftMs - (performance.now() - this.#startedAt), 0);
  }
}
