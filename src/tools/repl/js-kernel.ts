import { randomBytes } from "node:crypto";
import { z } from "zod";
import { BrigError } from "../../errors.js";
import { beforeAbort } from "../../lib/time/before-abort.js";
import { Utf8Stream } from "../../lib/utf8.js";
import type { CapturedOutput } from "../../sandbox/index.js";
import { captured, OutputCapture } from "../../sandbox/index.js";
import { startError } from "../command/command-output.js";
import { eachChunk, endOf } from "../command/run-process.js";
import type { CommandEnvironment, SandboxAccess, WorkingDirectory } from "../define-tool.js";
import type { ToolOutput } from "../tool.js";
import type { ToolProcess } from "../tool-sandbox.js";
import { bootSource, kernelSource } from "./kernel-source.js";

const MAX_MESSAGE_CHARS = 32 * 1024 * 1024;
const MAX_IMAGES = 16;
const MESSAGE_START = "\u001e";

/** A message of the kernel. The kernel runs the model's code, so its messages are not trusted. */
const messageSchema = z.discriminatedUnion("type", [
  z.object({ type: z.literal("done"), id: z.int(), success: z.boolean(), text: z.string().nullable() }),
  z.object({ type: z.literal("image"), url: z.string() }),
  z.object({ type: z.literal("tool"), id: z.int(), name: z.string(), args: z.unknown() }),
]);
type KernelMessage = z.infer<typeof messageSchema>;

export interface CellOutcome {
  success: boolean;
  /** Everything printed since the previous cell, then the value or the error of this one. */
  output: CapturedOutput;
  /** Data URLs. */
  images: readonly string[];
}

interface CellEnd {
  success: boolean;
  text: string | null;
}

interface Cell {
  id: number;
  images: string[];
  callTool: CallTool;
  finish: (end: CellEnd) => void;
  fail: (error: unknown) => void;
}

export type CallTool = (name: string, args: unknown) => Promise<ToolOutput>;

interface KernelNeeds extends SandboxAccess, CommandEnvironment, WorkingDirectory {}

/** A Node process in the sandbox that evaluates cells one after the other and keeps their declarations. */
export class JsKernel {
  readonly #process: ToolProcess;
  readonly #nonce = randomBytes(16).toString("hex");
  readonly #printed = new OutputCapture();
  #cell: Cell | null = null;
  #cells = 0;
  #unread = "";
  #end: BrigError | null = null;

  /** If the image has no Node, the first cell fails with `tool.failed`. */
  static async start(needs: KernelNeeds): Promise<JsKernel> {
    const sandbox = await needs.sandbox();
    const process = await sandbox.spawn(["node", "-e", bootSource], {
      cwd: needs.cwd,
      env: needs.environment,
      stdin: "pipe",
      mergeOutput: true,
    });
    return new JsKernel(process);
  }

  private constructor(process: ToolProcess) {
    this.#process = process;
    process.stdin?.on("error", () => undefined);
    this.#send({ source: kernelSource, nonce: this.#nonce });
    void this.#follow();
  }

  get hasEnded(): boolean {
    return this.#end !== null;
  }

  /** Rejects with the signal's reason, or `tool.failed` if the process ended. Then the kernel is unusable. */
  async run(
    source: string,
    { signal, callTool }: { signal: AbortSignal; callTool: CallTool },
  ): Promise<CellOutcome> {
    signal.throwIfAborted();
    if (this.#end !== null) throw this.#end;
    const id = ++this.#cells;
    const images: string[] = [];
    const end = new Promise<CellEnd>((finish, fail) => {
      this.#cell = { id, images, callTool, finish, fail };
      this.#send({ type: "run", id, source });
    });
    const { success, text } = await beforeAbort(end, signal).finally(() => {
      this.#cell = null;
    });
    const output = captured(this.#printed.take(), text === null ? "" : `${text}\n`);
    return { success, output, images };
  }

  /** Ends the process. Ignores errors: if the sandbox is gone, so is the process. */
  async close(): Promise<void> {
    this.#end ??= ended("js_repl kernel was reset");
    await this.#process.kill().catch(() => undefined);
  }

  #send(message: object): void {
    this.#process.stdin?.write(`${JSON.stringify(message)}\n`);
  }

  async #follow(): Promise<void> {
    try {
      const exit = await endOf(this.#process, this.#read());
      const reason =
        exit.startFailure === null
          ? `js_repl kernel exited with code ${exit.exitCode}; its state is lost, the next call starts a new one`
          : `js_repl needs node in the sandbox's image: ${startError(exit.startFailure)}`;
      this.#stop(ended(reason));
    } catch (error) {
      this.#stop(error);
      await this.#process.kill().catch(() => undefined);
    }
  }

  #stop(error: unknown): void {
    this.#end ??= error instanceof BrigError ? error : ended(String(error));
    this.#cell?.fail(error);
  }

  async #read(): Promise<void> {
    const decoder = new Utf8Stream();
    await eachChunk(this.#process.stdout, (chunk) => this.#take(decoder.push(chunk)));
    this.#print(this.#unread + decoder.end());
  }

  /** Separates messages from output. Both may arrive in parts. */
  #take(text: string): void {
    const start = `${MESSAGE_START}${this.#nonce}`;
    this.#unread += text;
    for (;;) {
      const at = this.#unread.indexOf(start);
      if (at === -1) {
        const outputLength = this.#unread.length - partialStartLength(this.#unread, start);
        this.#print(this.#unread.slice(0, outputLength));
        this.#unread = this.#unread.slice(outputLength);
        return;
      }
      this.#print(this.#unread.slice(0, at));
      this.#unread = this.#unread.slice(at);
      const end = this.#unread.indexOf("\n");
      if (end === -1 && this.#unread.length > MAX_MESSAGE_CHARS)
        throw ended(`js_repl kernel sent more than ${MAX_MESSAGE_CHARS} characters at once and was ended`);
      if (end === -1) return;
      this.#receive(this.#unread.slice(start.length, end));
      this.#unread = this.#unread.slice(end + 1);
    }
  }

  #print(text: string): void {
    if (text !== "") this.#printed.push(Buffer.from(text));
  }

  #receive(json: string): void {
    const message = readMessage(json);
    const cell = this.#cell;
    if (message === null || cell === null) return;
    if (message.type === "done" && message.id === cell.id) cell.finish(message);
    if (message.type === "image" && cell.images.length < MAX_IMAGES) cell.images.push(message.url);
    if (message.type === "tool") void this.#callTool(cell, message);
  }

  async #callTool(cell: Cell, { id, name, args }: KernelMessage & { type: "tool" }): Promise<void> {
    try {
      // Cells get what a model gets.
      const { command: _, ...result } = await cell.callTool(name, args);
      this.#send({ type: "result", id, result });
    } catch (error) {
      cell.fail(error);
    }
  }
}

/** How many characters at the end of a text may be the start of a message. */
function partialStartLength(text: string, start: string): number {
  for (let length = Math.min(text.length, start.length - 1); length > 0; length--)
    if (start.startsWith(text.slice(-length))) return length;
  return 0;
}

function readMessage(json: string): KernelMessage | null {
  try {
    return messageSchema.safeParse(JSON.parse(json)).data ?? null;
  } catch {
    return null;
  }
}

function ended(reason: string): BrigError {
  return new BrigError(reason, { code: "tool.failed" });
}
