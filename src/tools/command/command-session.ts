import { beforeAbort } from "../../lib/time/before-abort.js";
import { TimeLimit } from "../../lib/time/time-limit.js";
import type { CapturedOutput, CommandEnd } from "../../sandbox/index.js";
import { OutputCapture, renderOutput } from "../../sandbox/index.js";
import type { ToolCallOptions } from "../tool.js";
import type { ToolProcess } from "../tool-sandbox.js";
import { causeNotice, TREE_ENDED } from "./command-output.js";
import { eachChunk, endOf } from "./run-process.js";

/** A process that later calls can refer to. Its output is read all the time, so that it never blocks. */
export class CommandSession {
  readonly id: number;
  /** Null until the process has ended and all of its output has been read. */
  exit: CommandEnd | null = null;
  /** A counter, larger for sessions that were used later. */
  lastUse = 0;
  readonly #process: ToolProcess;
  readonly #unread = new OutputCapture();
  readonly #ended: Promise<void>;
  #isAbandoned = false;

  constructor(id: number, process: ToolProcess, onActivity: ToolCallOptions["onActivity"]) {
    this.id = id;
    this.#process = process;
    // The callback of the write reports the error.
    process.stdin?.on("error", () => undefined);
    this.#ended = this.#follow(onActivity);
    // `waitForEnd` reports the error, now or in a later call.
    this.#ended.catch(() => undefined);
  }

  get acceptsInput(): boolean {
    return this.#process.stdin !== null;
  }

  /** Resolves when the process has ended and its output is complete, at the latest after `maxMs`. */
  async waitForEnd(maxMs: number, signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted();
    using limit = new TimeLimit(maxMs, signal);
    try {
      await beforeAbort(this.#ended, limit.signal);
    } catch (error) {
      signal?.throwIfAborted();
      if (!limit.isOver) throw error;
    }
  }

  /** The output since the last call. */
  takeOutput(): CapturedOutput {
    return this.#unread.take();
  }

  /** Resolves to false if the process no longer accepts input. */
  async write(chars: string): Promise<boolean> {
    const { stdin } = this.#process;
    if (stdin === null) return false;
    return await new Promise<boolean>((resolve) => {
      stdin.write(chars, (error) => {
        resolve(error === null || error === undefined);
      });
    });
  }

  /** Sends SIGINT to the process group, as ctrl-C does in a terminal. */
  async interrupt(): Promise<void> {
    await this.#process.kill("SIGINT");
  }

  /** Ends the command of an aborted call, without reporting how it ended. */
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
    const notice = Buffer.from(causeNotice(exit.causes) + (exit.treeEnded ? TREE_ENDED : ""));
    if (notice.length > 0) for (const output of [this.#unread, transcript]) output.push(notice);
    this.exit = exit;
    if (this.#isAbandoned) return;
    onActivity?.({
      kind: "command-ended",
      exitCode: exit.exitCode,
      output: exit.startFailure?.message ?? renderOutput(transcript.take()),
      causes: exit.causes,
      durationMs: exit.durationMs,
      usage: exit.usage,
    });
  }
}
