import { readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Attempt, AttemptResult, AttemptStage } from "../../../batch/index.js";
import { gradeAgain, runAttempt, writeResult } from "../../../batch/index.js";
import { BrigError } from "../../../errors.js";
import { beforeAbort } from "../../../lib/time/before-abort.js";
import { TimeLimit } from "../../../lib/time/time-limit.js";
import type { MemoryShare } from "../http/memory-budget.js";
import type { Episode } from "../wire/episode-schemas.js";

export interface RunningEpisodeOptions {
  id: string;
  client: string;
  attempt: Attempt;
  /** Ends the attempt. */
  ending: AbortController;
  seat: Disposable;
  onWarning: (error: unknown) => void;
}

type State =
  | { kind: "running"; stage: AttemptStage | null }
  | { kind: "grading"; result: AttemptResult }
  | { kind: "ended"; result: AttemptResult }
  | { kind: "failed"; error: NonNullable<Episode["error"]> };

/** One attempt at a task by an agent of the service. */
export class RunningEpisode {
  readonly id: string;
  readonly client: string;
  /** Resolves when there is a result or an error. */
  readonly ended: Promise<void>;
  readonly #options: RunningEpisodeOptions;
  readonly #createdAt = new Date();
  #state: State = { kind: "running", stage: null };
  #grading: Promise<void> | undefined;

  constructor(options: RunningEpisodeOptions) {
    this.id = options.id;
    this.client = options.client;
    this.#options = options;
    this.ended = this.#run();
  }

  get hasEnded(): boolean {
    return this.#state.kind === "ended" || this.#state.kind === "failed";
  }

  get record(): Episode {
    const { task, agent } = this.#options.attempt;
    const state = this.#state;
    return {
      id: this.id,
      task: task.name,
      agent: agent.name,
      status: state.kind,
      stage: state.kind === "running" ? state.stage : null,
      createdAt: this.#createdAt.toISOString(),
      result: state.kind === "ended" ? state.result : null,
      error: state.kind === "failed" ? state.error : null,
    };
  }

  /** Waits for the end, but not longer than this. An abort rejects with the signal's reason. */
  async wait(waitMs: number, signal: AbortSignal): Promise<void> {
    if (waitMs === 0) return;
    using limit = new TimeLimit(waitMs, signal);
    await beforeAbort(this.ended, limit.signal).catch(() => undefined);
    signal.throwIfAborted();
  }

  /** Grades again what was kept. Errors: `usage.invalid` if it has not ended, or nothing was kept; those of the engine. */
  async grade(): Promise<void> {
    this.#grading ??= this.#grade().finally(() => {
      this.#grading = undefined;
    });
    await this.#grading;
  }

  /**
   * What the agent did. Errors: `serve.unknown` if it has no model, or has not ended; a refusal with 429 if there is
   * no memory for it.
   */
  async trajectory(memory: MemoryShare): Promise<Uint8Array> {
    const state = this.#state;
    const file = state.kind === "ended" ? state.result.files.trajectory : null;
    if (file !== null) {
      const path = join(this.#options.attempt.folder, file);
      memory.take((await stat(path)).size);
      return await readFile(path);
    }
    throw new BrigError("the episode has no trajectory", {
      code: "serve.unknown",
      hint: "only an agent with a model leaves one, and only when the episode has ended",
    });
  }

  /** Ends it, and removes what it has left. */
  async remove(): Promise<void> {
    const { ending, attempt } = this.#options;
    ending.abort(new DOMException("the episode is deleted", "AbortError"));
    await this.ended;
    await this.#grading?.catch(() => undefined);
    await rm(attempt.folder, { recursive: true, force: true });
  }

  async #run(): Promise<void> {
    const { attempt, seat, onWarning } = this.#options;
    const onStage = (stage: AttemptStage) => {
      this.#state = { kind: "running", stage };
    };
    try {
      this.#state = { kind: "ended", result: await runAttempt({ ...attempt, onStage }) };
    } catch (error) {
      if (!(error instanceof BrigError)) onWarning(error);
      this.#state = { kind: "failed", error: described(error) };
    } finally {
      seat[Symbol.dispose]();
    }
  }

  async #grade(): Promise<void> {
    const before = this.#state;
    const { attempt, ending } = this.#options;
    if (before.kind !== "ended")
      throw new BrigError("only an episode that has ended can be graded again", {
        code: "usage.invalid",
        hint: "wait for its end; its result has the first grade already",
      });
    this.#state = { kind: "grading", result: before.result };
    try {
      const { task, images, engine, environment, runtime, folder } = attempt;
      const place = { engine, environment, runtime, signal: ending.signal };
      const result = await gradeAgain(folder, { task, images, place });
      await writeResult(folder, result);
      this.#state = { kind: "ended", result };
    } catch (error) {
      this.#state = before;
      throw error;
    }
  }
}

function described(error: unknown): NonNullable<Episode["error"]> {
  if (!(error instanceof BrigError)) return { code: "serve.failed", message: "the service has a fault" };
  const { code, message, hint } = error;
  return { code, message, hint };
}
