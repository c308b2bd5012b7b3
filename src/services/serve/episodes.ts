import { randomBytes } from "node:crypto";
import { mkdir, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type {
  AgentWork,
  Attempt,
  AttemptAgent,
  AttemptLimits,
  AttemptResult,
  AttemptStage,
  Task,
  TaskImages,
} from "../../batch/index.js";
import {
  agentNetwork,
  gradeAgain,
  networkScope,
  noUsage,
  refuseUnsupported,
  rowSchema,
  runAttempt,
  taskOfRow,
  writeResult,
} from "../../batch/index.js";
import { BrigError, invalidUsage } from "../../errors.js";
import type { Environment } from "../../lib/env.js";
import { beforeAbort } from "../../lib/time/before-abort.js";
import { TimeLimit } from "../../lib/time/time-limit.js";
import type { Engine } from "../../sandbox/index.js";
import { describeNetwork } from "../../sandbox/index.js";
import type { MemoryShare } from "./http/memory-budget.js";
import type { Capacity } from "./sandboxes/capacity.js";
import { watchedEgress } from "./sandboxes/egress-counts.js";
import type { Need } from "./sandboxes/machine-room.js";
import type { AskedFor } from "./sandboxes/quota.js";
import { newId } from "./sandboxes/sandbox-set.js";
import type { OpenedPlace } from "./sandboxes/served-sandbox.js";
import type { Episode, EpisodeOptions } from "./wire/schemas.js";

export interface EpisodeSetOptions {
  place: AttemptPlace;
  capacity: Capacity;
  /** What clients may ask for, and what it takes. */
  quotas: EpisodeQuotas;
  /** The image of episodes without a task. */
  image: string;
  /** Error: `usage.invalid` if the request names no agent and the service was started without one. */
  openAgent: (agent: EpisodeOptions["agent"]) => AttemptAgent;
  onWarning: (error: unknown) => void;
}

interface EpisodeQuotas {
  /** Error: a refusal with 403. */
  refuse(client: string, asked: AskedFor): void;
  need(task: Task): Promise<Need>;
}

/** How many episodes of a client are kept after their ends. Older ones are forgotten, with what they have left. */
const MAX_KEPT = 1000;

/** All episodes of all clients. */
export class EpisodeSet {
  readonly #options: EpisodeSetOptions;
  readonly #episodes = new Map<string, RunningEpisode>();

  constructor(options: EpisodeSetOptions) {
    this.#options = options;
  }

  /** Begins an episode. Errors: a refusal with 429; `serve.unknown`, `usage.invalid`; the signal's reason. */
  async create(client: string, request: EpisodeOptions, signal: AbortSignal): Promise<Episode> {
    const { place, capacity, quotas, image, openAgent, onWarning } = this.#options;
    const task = episodeTask(request, { tasks: place.tasks, image });
    const agent = openAgent(request.agent);
    // A task is the operator's, whatever its image is.
    if (request.task === undefined) quotas.refuse(client, { image: request.image ?? image });
    const need = await quotas.need(task);
    const seat = await capacity.take(client, { waitMs: request.waitMs ?? 0, signal, need });
    try {
      signal.throwIfAborted();
      const { timeoutMs, maxTurns, maxTokens } = request;
      const ending = new AbortController();
      const attempt = await newAttempt(place, {
        task,
        agent,
        limits: {
          agentTimeoutSec: timeoutMs === undefined ? undefined : timeoutMs / 1000,
          maxTurns,
          maxTokens,
        },
        signal: ending.signal,
      });
      const episode = new RunningEpisode({ id: newId(), client, attempt, ending, seat, onWarning });
      // At once, because it is running: a failure to forget another one must not make it unknown.
      this.#episodes.set(episode.id, episode);
      await this.#forgetOldest(client).catch(onWarning);
      return episode.record;
    } catch (error) {
      seat[Symbol.dispose]();
      throw error;
    }
  }

  /** Error: `serve.unknown`, also for the episode of another client. */
  get(client: string, id: string): RunningEpisode {
    const episode = this.#episodes.get(id);
    if (episode !== undefined && episode.client === client) return episode;
    throw new BrigError("there is no such episode", {
      code: "serve.unknown",
      hint: `it may have been deleted; only the ${MAX_KEPT} latest that have ended are kept`,
    });
  }

  of(client: string): Episode[] {
    return this.#allOf(client).map(({ record }) => record);
  }

  async remove(client: string, id: string): Promise<void> {
    await this.#remove(this.get(client, id));
  }

  /** Ends all that a client has. Their results say so. */
  endAllOf(client: string): void {
    for (const episode of this.#allOf(client)) episode.end();
  }

  /** Resolves when all have ended. */
  async settled(): Promise<void> {
    await Promise.all([...this.#episodes.values()].map((episode) => episode.ended));
  }

  /** Ends and removes all of them. What cannot be removed is only warned of. */
  async close(): Promise<void> {
    const { onWarning } = this.#options;
    await Promise.all([...this.#episodes.values()].map((episode) => this.#remove(episode).catch(onWarning)));
  }

  #allOf(client: string): RunningEpisode[] {
    return [...this.#episodes.values()].filter((episode) => episode.client === client);
  }

  async #forgetOldest(client: string): Promise<void> {
    const over = this.#allOf(client).filter((episode) => episode.hasEnded);
    for (const episode of over.slice(0, Math.max(0, over.length - MAX_KEPT + 1))) await this.#remove(episode);
  }

  async #remove(episode: RunningEpisode): Promise<void> {
    this.#episodes.delete(episode.id);
    await episode.remove();
  }
}

interface RunningEpisodeOptions {
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
class RunningEpisode {
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

  end(): void {
    this.#options.ending.abort(new DOMException("the episode is ended", "AbortError"));
  }

  /** Ends it, and removes what it has left. */
  async remove(): Promise<void> {
    const { attempt } = this.#options;
    this.end();
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
      throw invalidUsage(
        "only an episode that has ended can be graded again",
        "wait for its end; its result has the first grade already",
      );
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

/** The task that a client names, or makes of an instruction. Errors: `serve.unknown`, `usage.invalid`. */
function episodeTask(
  { task: name, instruction, image, check }: EpisodeOptions,
  { tasks, image: usualImage }: { tasks: readonly Task[]; image: string },
): Task {
  if (name !== undefined) {
    if (instruction === undefined && image === undefined && check === undefined)
      return taskNamed(name, tasks);
    throw invalid("a task has its own instruction, image and check");
  }
  if (instruction === undefined || check === undefined)
    throw invalid("an episode needs either a task, or an instruction and a check");
  const row = rowSchema.safeParse({ prompt: instruction, check, image: image ?? usualImage });
  if (!row.success) throw invalid("the instruction is empty");
  return taskOfRow(row.data, {
    name: "instruction",
    source: "a request",
    env: {},
    workspace: null,
    files: [],
    network: { mode: "no-network", allowedHosts: [] },
  });
}

function invalid(message: string): BrigError {
  return invalidUsage(message, "GET /openapi.json describes all requests");
}

/** What the attempts of the service have in common. */
export interface AttemptPlace {
  tasks: readonly Task[];
  images: TaskImages;
  engine: Engine;
  environment: Environment;
  runtime: string | undefined;
  /** Each attempt has a folder of its own in it. */
  directory: string;
}

/** Error: `serve.unknown`; `usage.invalid` if several tasks end in this name, or if no attempt could give what it needs. */
export function taskNamed(name: string, tasks: readonly Task[]): Task {
  const exact = tasks.find((task) => task.name === name);
  const ending = exact === undefined ? tasks.filter((task) => task.name.split("/").at(-1) === name) : [exact];
  const [task] = ending;
  if (task === undefined)
    throw new BrigError(`the service has no task ${JSON.stringify(name)}`, {
      code: "serve.unknown",
      hint: "GET /v1/tasks lists those that it was started with",
    });
  if (ending.length > 1)
    throw invalidUsage(
      `the tasks ${ending.map((one) => one.name).join(" and ")} both end in ${name}`,
      "give the whole name",
    );
  refuseUnsupported(task);
  return task;
}

/** An attempt with a new folder. */
async function newAttempt(
  place: AttemptPlace,
  {
    task,
    agent,
    limits = {},
    signal,
    onStage,
  }: {
    task: Task;
    agent: AttemptAgent;
    limits?: AttemptLimits;
    signal: AbortSignal;
    onStage?: (stage: AttemptStage) => void;
  },
): Promise<Attempt> {
  const { images, engine, environment, runtime, directory } = place;
  const folder = join(directory, randomBytes(16).toString("hex"));
  await mkdir(folder);
  return { task, attempt: 1, agent, images, engine, environment, runtime, folder, limits, signal, onStage };
}

/**
 * Starts the container of a task, in which the client is the agent. Errors: `serve.unknown`; `usage.invalid` for a
 * task of several steps; `engine.failed` when its container does not start; the signal's reason.
 */
export async function openTask(
  name: string,
  { place, signal }: { place: AttemptPlace; signal: AbortSignal },
): Promise<OpenedPlace> {
  const task = taskNamed(name, place.tasks);
  const [step] = task.steps;
  if (step === undefined || task.steps.length > 1)
    throw invalidUsage(
      `the task ${task.name} has several steps`,
      "run it as an episode, whose agent gets one step after the other",
    );
  const ending = new AbortController();
  const agent = new HeldAgent();
  const attempt = await newAttempt(place, { task, agent, signal: ending.signal });
  const running = runAttempt(attempt).finally(() => rm(attempt.folder, { recursive: true, force: true }));
  running.catch(() => undefined);
  const end = async () => {
    ending.abort(new DOMException("the sandbox is removed", "AbortError"));
    await running.catch(() => undefined);
  };
  const leave = () => void end();
  signal.addEventListener("abort", leave, { once: true });
  try {
    if (signal.aborted) await end();
    const work = await Promise.race([agent.working, running.then(notStarted)]);
    signal.throwIfAborted();
    return {
      sandbox: work.sandbox,
      egress: watchedEgress(work.sandbox),
      image: work.sandbox.image,
      mode: null,
      network: describeNetwork(networkScope(agentNetwork(task, step))),
      task: task.name,
      instruction: step.instruction,
      workingDirectory: work.cwd,
      async grade() {
        agent.done();
        return await running;
      },
      onEnding: null,
      async close() {
        await end();
        return null;
      },
    };
  } catch (error) {
    await end();
    signal.throwIfAborted();
    throw error;
  } finally {
    signal.removeEventListener("abort", leave);
  }
}

function notStarted({ failure }: AttemptResult): never {
  throw new BrigError(
    `the container of the task could not be started: ${failure?.message ?? "it was cancelled"}`,
    {
      code: "engine.failed",
      hint: "brig doctor checks the engine",
    },
  );
}

/** An agent that is somewhere else: the attempt waits until it is told that the agent is done. */
class HeldAgent implements AttemptAgent {
  readonly name = "remote";
  readonly model = null;
  /** The container in which it works, once that has been started. */
  readonly working: Promise<AgentWork>;
  readonly #isDone = new AbortController();
  #begin!: (work: AgentWork) => void;

  constructor() {
    this.working = new Promise((resolve) => {
      this.#begin = resolve;
    });
  }

  async run(work: AgentWork) {
    this.#begin(work);
    await new Promise<void>((resolve) => {
      for (const signal of [work.signal, this.#isDone.signal]) {
        if (signal.aborted) resolve();
        signal.addEventListener("abort", () => resolve(), { once: true });
      }
    });
    return { ending: "completed", message: null, usage: noUsage, files: {} } as const;
  }

  done(): void {
    this.#isDone.abort();
  }
}
