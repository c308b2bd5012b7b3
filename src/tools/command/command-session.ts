import { type CapturedOutput, renderOutput } from "../../output/captured-output.js";
import { OutputCapture } from "../../output/output-capture.js";
import type { ToolCallOptions } from "../tool.js";
import type { ToolExit, ToolProcess } from "../tool-sandbox.js";
import { endOf } from "./command-failure.js";
import { TREE_ENDED } from "./command-output.js";
import { eachChunk } from "./each-chunk.js";

/** A process that a model can come back to. Its output is read all the time, so that it never waits for a reader. */
export class CommandSession {
  readonly id: number;
  /** Null while the process runs or output is still to come. */
  exit: ToolExit | null = null;
  /** A stamp that grows with every use. */
  lastUse = 0;
  readonly #process: ToolProcess;
  readonly #unread = new OutputCapture();
  readonly #ended: Promise<void>;
  #isAbandoned = false;

  constructor(id: number, process: ToolProcess, onActivity: ToolCallOptions["onActivity"]) {
    this.id = id;
    this.#process = process;
    // A failed write is told by its own callback.
    process.stdin?.on("error", () => undefined);
    this.#ended = this.#follow(onActivity);
    // Whoever waits for the end gets the failure; with nobody waiting the next call does.
    this.#ended.catch(() => undefined);
  }

  get acceptsInput(): boolean {
    return this.#process.stdin !== null;
  }

  /** Waits until the process has ended and its output is complete, at most so long. */
  async waitForEnd(maxMs: number, signal: AbortSignal | undefined): Promise<void> {
    await within(this.#ended, maxMs, signal);
  }

  /** The output since the last call. */
  takeOutput(): CapturedOutput {
    return this.#unread.take();
  }

  /** False when the process no longer takes input. */
  async write(chars: string): Promise<boolean> {
    const { stdin } = this.#process;
    if (stdin === null) return false;
    return await new Promise<boolean>((resolve) => {
      stdin.write(chars, (error) => {
        resolve(error === null || error === undefined);
      });
    });
  }

  /** What ctrl-C does in a terminal: SIGINT to the process group. */
  async interrupt(): Promise<void> {
    await this.#process.kill("SIGINT");
  }

  /** Ends a command whose call was aborted: the call is stopped, and how its command ended is no news. */
  async abandon(): Promise<void> {
    this.#isAbandoned = true;
    await this.end();
  }

  async end(): Promise<void> {
    await this.#process.kill();
    await this.#ended.catch(() => undefined);
  }

  async #follow(onActivity: ToolCallOptions["onActivity"]): Promise<void> {
    const transcript = new OutputCapture(onActivity === undefined ? 0 : undefined);
    const reading = eachChunk(this.#process.stdout, (chunk) => {
      this.#unread.push(chunk);
      if (onActivity !== undefined) transcript.push(chunk);
      onActivity?.({ kind: "command-output", chunk });
    });
    const exit = await endOf(this.#process, reading);
    if (exit.treeEnded) for (const output of [this.#unread, transcript]) output.push(Buffer.from(TREE_ENDED));
    this.exit = exit;
    if (this.#isAbandoned) return;
    onActivity?.({
      kind: "command-ended",
      exitCode: exit.exitCode,
      output: exit.startFailure?.message ?? renderOutput(transcript.take()),
      durationMs: exit.durationMs,
      usage: exit.usage,
    });
  }
}

/** Resolves when the promise does or the time is over; rejects with the promise or the signal's reason. */
async function within(promise: Promise<void>, maxMs: number, signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted();
  const over = new AbortController();
  const until = new Promise<void>((resolve, reject) => {
    const timer = setTimeout(resolve, maxMs);
    const stop = () => {
      reject(signal?.reason);
    };
    signal?.addEventListener("abort", stop, { once: true, signal: over.signal });
    over.signal.addEventListener("abort", () => {
      clearTimeout(timer);
    });
  });
  try {
    await Promise.race([promise, until]);
  } finally {
    over.abort();
  }
}
